//go:build !unit

package canal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

func TestS65DumpThreadKilled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		b.insert("a")
		require.Equal(t, []string{"a"}, b.read().ids())
		for i := range 3 {
			killDump(b)
			b.insert(fmt.Sprintf("k%d", i))
			require.Equal(t, []string{fmt.Sprintf("k%d", i)}, b.read().ids())
		}
		n := 0
		for _, times := range b.reader.State().Reconnects {
			n += times
		}
		require.GreaterOrEqual(t, n, 3)
		require.True(t, b.reader.State().Connected)
		require.Empty(t, b.reader.State().LastError)
	})
}

// killDump kills the connection that streams to the reader.
func killDump(b *bench) {
	b.t.Helper()
	sessions := dumps(b)
	require.NotEmpty(b.t, sessions)
	for _, s := range sessions {
		b.exec(fmt.Sprintf("KILL %d", s.ID))
	}
}

// dumps returns the connections that stream to the reader.
func dumps(b *bench) []rig.Session {
	b.t.Helper()
	return slices.DeleteFunc(rig.Sessions(b.t, b.server.DB(b.t)), func(s rig.Session) bool {
		return s.User != b.cfg.User || !strings.HasPrefix(s.Command, "Binlog Dump")
	})
}

func TestServerRestart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		b.insert("a")
		require.Equal(t, []string{"a"}, b.read().ids())
		server.Kill(t)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		for ctx.Err() == nil {
			_, err := b.reader.Next(ctx)
			require.True(t, err == nil || ctx.Err() != nil, "%v", err)
		}
		require.False(t, b.reader.State().Connected)
		server.Start(t)
		b.insert("b")
		require.Equal(t, []string{"b"}, b.read().ids())
		require.True(t, b.reader.State().Connected)
	}, rig.Own())
}

func TestPausedServerIsNoticed(t *testing.T) {
	t.Parallel()
	server := rig.MariaDB(t, rig.Own())
	b := newBench(t, server)
	b.cfg.ReadTimeout = time.Second
	b.stream()
	b.insert("a")
	require.Equal(t, []string{"a"}, b.read().ids())
	server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	for ctx.Err() == nil && b.reader.State().Connected {
		_, _ = b.reader.Next(ctx) // State is what is looked at
	}
	require.Positive(t, b.reader.State().Reconnects["timeout"], "%+v", b.reader.State())
	server.Resume(t)
	b.insert("b")
	require.Equal(t, []string{"b"}, b.read().ids())
}

func TestCloseEndsNext(t *testing.T) {
	t.Parallel()
	b := newBench(t, rig.MariaDB(t))
	b.stream()
	b.insert("a")
	require.Equal(t, []string{"a"}, b.read().ids())
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := b.reader.Next(context.WithoutCancel(t.Context())); err != nil {
				ended <- err
				return
			}
		}
	}()
	require.NoError(t, b.reader.Close())
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(5 * time.Second):
		t.Fatal("Next did not return")
	}
}

// By GTIDs the server would read the whole file up to the place first.
func TestResumesByPlaceOnTheSameServer(t *testing.T) {
	t.Parallel()
	server := rig.MySQL(t)
	b := newBench(t, server)
	b.stream()
	b.insert("a")
	require.Equal(t, []string{"a"}, b.read().ids())
	killDump(b)
	b.insert("b")
	require.Equal(t, []string{"b"}, b.read().ids())
	sessions := dumps(b)
	require.Len(t, sessions, 1)
	require.Equal(t, "Binlog Dump", sessions[0].Command, "with GTIDs on it would be Binlog Dump GTID")
}
