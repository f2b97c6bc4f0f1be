package proc_test

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/outbox-relay/test/rig/internal/proc"
)

// start runs a shell command as a server in a folder of its own.
func start(t *testing.T, script string) (*proc.Process, *proc.Dir) {
	t.Helper()
	dir, err := proc.NewDir("test")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dir.Remove()) })
	process, err := proc.Start(dir, []string{"GREETING=hello"}, "bash", "-c", script)
	require.NoError(t, err)
	return process, dir
}

// logged waits until the server has written something: then its script is where the test wants it.
func logged(t *testing.T, p *proc.Process, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return p.Log() == want }, 20*time.Second, 5*time.Millisecond, "log: %q", p.Log())
}

func TestStopEndsTheServerGently(t *testing.T) {
	isolate(t)
	p, _ := start(t, `trap 'echo bye; exit 3' TERM; echo "$GREETING"; while :; do sleep 0.05; done`)
	logged(t, p, "hello")
	assert.False(t, p.Ended())
	require.NoError(t, p.Stop(t.Context()))
	assert.Equal(t, "hello\nbye", p.Log())
	assert.False(t, alive(p.Pid()))
	require.ErrorIs(t, p.Signal(syscall.SIGTERM), proc.ErrEnded)
}

func TestStopKillsAServerThatDoesNotListen(t *testing.T) {
	isolate(t)
	p, _ := start(t, `trap '' TERM; echo deaf; exec sleep 1000000`)
	logged(t, p, "deaf")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, p.Stop(ctx), "still running after SIGTERM")
	assert.False(t, alive(p.Pid()))
}

func TestKillEndsAPausedServer(t *testing.T) {
	isolate(t)
	p, _ := start(t, `exec sleep 1000000`)
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	require.NoError(t, p.Kill())
	assert.False(t, alive(p.Pid()))
}

func TestEndedTellsACrash(t *testing.T) {
	isolate(t)
	p, dir := start(t, `echo boom; exit 4`)
	require.Eventually(t, p.Ended, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, p.Kill(), "killing what has ended is no error")
	assert.Equal(t, "boom", p.Log())
	status, err := os.ReadFile(dir.Join("exit"))
	require.NoError(t, err)
	assert.Equal(t, "4\n", string(status))

	again, err := proc.Start(dir, nil, "sleep", "1000000")
	require.NoError(t, err)
	assert.False(t, again.Ended(), "the first run's end is not this one's")
	require.NoError(t, again.Kill())
}

func TestRunningServerNeedsNoGoroutine(t *testing.T) {
	isolate(t)
	p, _ := start(t, `exec sleep 1000000`)
	goleak.VerifyNone(t)
	require.NoError(t, p.Kill())
}

func TestPortsAreReserved(t *testing.T) {
	isolate(t)
	first, err := proc.ReservePort()
	require.NoError(t, err)
	second, err := proc.ReservePort()
	require.NoError(t, err)
	assert.NotEqual(t, first.Number, second.Number)
	var config net.ListenConfig
	for _, port := range []*proc.Port{first, second} {
		l, err := config.Listen(t.Context(), "tcp", port.Addr())
		require.NoError(t, err, "a reserved port is free")
		require.NoError(t, l.Close())
		require.NoError(t, port.Release())
	}
}

func TestPollEndsWithTheContextOrTheServer(t *testing.T) {
	t.Parallel()
	tries := 0
	err := proc.Poll(t.Context(), func(context.Context) error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, 3, tries)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.EqualError(t, proc.Poll(ctx, func(context.Context) error { return errors.New("not yet") }), "not yet")
	err = proc.Poll(t.Context(), func(context.Context) error { return proc.ErrEnded })
	require.ErrorIs(t, err, proc.ErrEnded)
}
