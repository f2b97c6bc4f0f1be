package outbox_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestImportGraph: a service that writes messages gets the standard library and this package, and nothing else.
func TestImportGraph(t *testing.T) {
	t.Parallel()
	const outbox = "example.com/outbox-relay/outbox"
	for pkg, want := range map[string][]string{
		outbox:                 {outbox},
		outbox + "/outboxtest": {outbox, outbox + "/outboxtest", "example.com/outbox-relay/internal/words"},
	} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", pkg)
		out, err := list.Output()
		require.NoError(t, err)
		assert.ElementsMatch(t, want, strings.Fields(string(out)), pkg)
	}
}
