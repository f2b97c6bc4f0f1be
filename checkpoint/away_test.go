package checkpoint_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/checkpoint"
)

// silence is a server that takes connections and never answers, or hangs up at once.
func silence(t *testing.T, hangUp bool) (addr string, connections *atomic.Int64) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	connections = &atomic.Int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			connections.Add(1)
			if hangUp {
				assert.NoError(t, conn.Close())
			} else {
				open = append(open, conn)
			}
		}
		for _, conn := range open {
			assert.NoError(t, conn.Close())
		}
	}()
	t.Cleanup(func() {
		assert.NoError(t, listener.Close())
		<-done
	})
	return listener.Addr().String(), connections
}

func openAt(t *testing.T, urls ...string) *checkpoint.Store {
	t.Helper()
	s, err := checkpoint.Open(checkpoint.Config{URLs: urls, Timeout: 400 * time.Millisecond}, zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// Whatever Redis does, a call ends in time and a failure to read is never "there is none".
func TestEveryCallEndsInTime(t *testing.T) {
	t.Parallel()
	silent, _ := silence(t, false)
	for name, urls := range map[string][]string{
		"silent":          {"redis://" + silent},
		"silent sentinel": {"redis+sentinel://" + silent + "/main"},
		"silent cluster":  {"redis+cluster://" + silent},
		"refused":         {"redis://127.0.0.1:1"},
		"refused cluster": {"redis://127.0.0.1:1", "redis://127.0.0.1:2"},
		"no TLS there":    {"rediss://" + silent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openAt(t, urls...)
			for what, call := range map[string]func(ctx context.Context) error{
				"load":    func(ctx context.Context) error { _, err := s.Load(ctx, source); return err },
				"save":    func(ctx context.Context) error { return s.Save(ctx, source, record(1, 4)) },
				"epoch":   func(ctx context.Context) error { _, err := s.NextEpoch(ctx, source); return err },
				"history": func(ctx context.Context) error { _, err := s.History(ctx, source, 1); return err },
				"reset":   func(ctx context.Context) error { return s.Reset(ctx, source, checkpoint.Change{Who: operator}) },
				"undo":    func(ctx context.Context) error { return s.Undo(ctx, source, operator) },
				"holder":  func(ctx context.Context) error { _, _, err := s.LeaseHolder(ctx, source); return err },
			} {
				start := time.Now()
				err := call(t.Context())
				require.Error(t, err, what)
				assert.Less(t, time.Since(start), time.Second, what)
				require.NotErrorIs(t, err, checkpoint.ErrNone, what)
				require.NotErrorIs(t, err, checkpoint.ErrFenced, what)
				assert.Equal(t, checkpoint.CodeAway, checkpoint.CodeOf(err), "%s: %v", what, err)
				require.ErrorContains(t, err, "check that redis runs", what)
			}
			report, err := s.Inspect(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, report.Findings)
			assert.Equal(t, checkpoint.CheckReachable, report.Findings[0].Check)
			assert.Equal(t, "failure", report.Worst().String())
		})
	}
}

func TestAnEndedContextIsNotRedisAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := openAt(t, "redis://127.0.0.1:1").Load(ctx, source)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, checkpoint.CodeStopped, checkpoint.CodeOf(err))
}

// A server that hangs up at once is what a crashing Redis behind a proxy looks like: the wait for a lease must not run hot.
func TestWaitingForTheLeaseIsNoHotLoop(t *testing.T) {
	t.Parallel()
	addr, connections := silence(t, true)
	s := openAt(t, "redis://"+addr)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := s.AcquireLease(ctx, source, time.Minute)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Positive(t, connections.Load())
	assert.Less(t, connections.Load(), int64(60))
}
