package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/words"
)

// TestEveryKindOfRecoveryIsDocumented compares what recoveries_total counts with the runbook and the list of recoveries.
func TestEveryKindOfRecoveryIsDocumented(t *testing.T) {
	t.Parallel()
	for page, row := range map[string]*regexp.Regexp{
		"docs/OPERATIONS.md": regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| "),
		"docs/RECOVERY.md":   regexp.MustCompile("(?m)^\\|[^|\n]*\\| `([a-z-]+)`"),
	} {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		found := map[string]bool{}
		for _, m := range row.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}
		for _, kind := range words.Recoveries() {
			assert.True(t, found[kind], "%s has no line for the kind %s", page, kind)
		}
	}
}
