package words_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/words"
)

// sets are all sets of label values, by the beginning of their constants' names.
var sets = map[string][]string{
	"Missed": words.Missed(), "Recovery": words.Recoveries(), "Rows": words.RecoveryRows(), "Reconnect": words.Reconnects(),
	"Refused": words.Refusals(), "Origin": words.Origins(), "Suppressed": words.Suppressed(), "Save": words.Saves(), "Round": words.Rounds(),
	"SweptRow": words.SweptRows(), "Swept": words.Swept(), "Archive": words.ArchiveRows(), "Paused": words.Pauses(), "Ack": words.Acks(),
	"Via": words.Vias(), "Transaction": {words.TransactionCommitted},
}

// single are the constants that belong to no set.
var single = map[string]bool{"PositionSweep": true, "RecoveryResumed": true}

// A word that is declared and not in its set would be counted and neither documented nor looked for.
func TestEveryWordIsInItsSet(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	seen := map[string][]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				c, ok := spec.(*ast.ValueSpec)
				require.True(t, ok)
				name := c.Names[0].Name
				if single[name] || strings.HasPrefix(name, "Header") || strings.HasPrefix(name, "Column") {
					continue
				}
				literal, ok := c.Values[0].(*ast.BasicLit)
				require.True(t, ok)
				text, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				seen[prefix(t, name)] = append(seen[prefix(t, name)], text)
			}
		}
	}
	for name, set := range sets {
		assert.ElementsMatch(t, seen[name], set, name)
	}
}

// prefix returns the longest name of a set that a constant's name begins with.
func prefix(t *testing.T, name string) string {
	t.Helper()
	longest := ""
	for set := range sets {
		if strings.HasPrefix(name, set) && len(set) > len(longest) {
			longest = set
		}
	}
	require.NotEmpty(t, longest, "%s belongs to no set", name)
	return longest
}

func TestTheStreamGivesReasonsThatTheSweeperLooksFor(t *testing.T) {
	t.Parallel()
	assert.Subset(t, words.Missed(), words.Skipped())
}
