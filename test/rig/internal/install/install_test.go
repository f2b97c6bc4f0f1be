package install_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/outbox-relay/test/rig/internal/install"
)

func emptyCache(t *testing.T) {
	t.Helper()
	t.Setenv("RIG_CACHE", t.TempDir())
}

func TestTemplateIsBuiltOnceByWhoeverIsFirst(t *testing.T) {
	emptyCache(t)
	var built atomic.Int32
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			dir, err := install.Template(t.Context(), "kind-1", func(_ context.Context, dir string) error {
				built.Add(1)
				return os.WriteFile(filepath.Join(dir, "data"), []byte("x"), 0o600)
			})
			assert.FileExists(t, filepath.Join(dir, "data"))
			return err
		})
	}
	require.NoError(t, group.Wait())
	assert.EqualValues(t, 1, built.Load())
}

func TestTemplateThatBrokeIsBuiltAgain(t *testing.T) {
	emptyCache(t)
	errBroken := errors.New("broken")
	_, err := install.Template(t.Context(), "kind-1", func(_ context.Context, dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o600), errBroken)
	})
	require.ErrorIs(t, err, errBroken)
	dir, err := install.Template(t.Context(), "kind-1", func(context.Context, string) error { return nil })
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(dir, "half"))
}

func TestWhatIsMissingSaysWhatToRun(t *testing.T) {
	emptyCache(t)
	for name, find := range map[string]func() error{
		"MySQL":   func() error { _, err := install.MySQL(); return err },
		"Kafka":   func() error { _, err := install.Kafka(); return err },
		"program": func() error { _, err := install.Program("no-such-program"); return err },
	} {
		err := find()
		require.ErrorIs(t, err, install.ErrMissing, name)
		require.ErrorContains(t, err, "make setup", name)
	}
}

func TestRunTellsWhatTheCommandSaid(t *testing.T) {
	t.Parallel()
	require.NoError(t, install.Run(t.Context(), "exit 0", "bash"))
	err := install.Run(t.Context(), "echo why; exit 3", "bash")
	require.ErrorContains(t, err, "run bash: exit status 3: why")
}
