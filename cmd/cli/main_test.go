package cli_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/cmd/cli"
	"example.com/outbox-relay/test/harness"
)

var update = flag.Bool("update", false, "rewrite the files under testdata and docs/CLI.md")

func TestMain(m *testing.M) {
	checkpoint.RouteLibraryLog(zerolog.Nop())
	goleak.VerifyTestMain(m,
		// A fetch request of sarama's registers a meter in go-metrics' global registry, which starts one goroutine for the
		// whole process.
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// outcome is how a command ended.
type outcome struct {
	code     int
	out, err string
}

// buffer may be written to by the relay's goroutines and read meanwhile.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// command runs the command line as a shell would.
func command(t *testing.T, args ...string) outcome {
	t.Helper()
	return commandWithin(t, time.Minute, args...)
}

// commandWithin runs a command that is told to stop after a while, as by SIGTERM.
func commandWithin(t *testing.T, limit time.Duration, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out, errs buffer
	code := cli.Execute(ctx, args, cli.Streams{In: new(bytes.Buffer), Out: &out, Err: &errs})
	return outcome{code: code, out: out.String(), err: errs.String()}
}

// ok runs a command that must succeed and returns its result.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	o := command(t, args...)
	require.Equal(t, cli.ExitOK, o.code, "%v: %s%s", args, o.out, o.err)
	return o.out
}

// golden compares a text with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	goldenFile(t, filepath.Join("testdata", name+".golden"), got)
}

func goldenFile(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "make it with -update")
	assert.Equal(t, string(want), got, "%s; if this is meant: go test ./cmd/cli -update", path)
}

// nowhere is a configuration whose servers do not answer.
func nowhere(t *testing.T) harness.Settings {
	t.Helper()
	return harness.Target{
		Primary:  harness.Endpoint{Addr: harness.FreeAddr(t), User: "relay", Password: "hunter2-mysql"},
		Tables:   []string{"app.local_message"},
		Brokers:  []string{harness.FreeAddr(t)},
		RedisURL: "redis://:hunter2-redis@" + harness.FreeAddr(t) + "/0",
	}.Settings(t)
}

// written writes a configuration by hand.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outbox-relay.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
