package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/cmd/cli"
)

// commandPaths lists the words of every command.
func commandPaths(t *testing.T) [][]string {
	t.Helper()
	var paths [][]string
	visit(cli.Root(), func(cmd *cobra.Command) {
		paths = append(paths, strings.Fields(cmd.CommandPath())[1:])
	})
	require.Greater(t, len(paths), 20)
	return paths
}

func visit(cmd *cobra.Command, fn func(*cobra.Command)) {
	fn(cmd)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			visit(sub, fn)
		}
	}
}

// docs/CLI.md says what --help says.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString("# Commands\n\n<!-- Generated from the commands' help: go test ./cmd/cli -run TestDocumentation -update -->\n")
	root := cli.Root()
	fmt.Fprintf(&out, "\n%s\n\nFlags of every command:\n\n```\n%s```\n", root.Long, root.PersistentFlags().FlagUsages())
	visit(root, func(cmd *cobra.Command) {
		if cmd == root || strings.Contains(cmd.CommandPath(), " completion ") || cmd.Name() == "help" {
			return
		}
		document(&out, cmd)
	})
	goldenFile(t, "../../docs/CLI.md", out.String())
}

func document(out *strings.Builder, cmd *cobra.Command) {
	about := cmd.Long
	if about == "" || cmd.Name() == "completion" {
		about = cmd.Short + "."
	}
	fmt.Fprintf(out, "\n## %s\n\n%s\n", cmd.CommandPath(), layOut(about))
	if cmd.HasAvailableSubCommands() {
		out.WriteString("\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(out, "- `%s`: %s\n", sub.UseLine(), sub.Short)
			}
		}
		return
	}
	fmt.Fprintf(out, "\n```\n%s\n\n%s```\n", cmd.UseLine(), cmd.LocalNonPersistentFlags().FlagUsages())
	if cmd.Example != "" {
		fmt.Fprintf(out, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	}
}

// layOut keeps indented lines as they are.
func layOut(text string) string {
	var out []string
	for block := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(block, "  ") {
			block = "```\n" + block + "\n```"
		}
		out = append(out, block)
	}
	return strings.Join(out, "\n\n")
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), into), text)
}
