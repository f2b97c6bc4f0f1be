//go:build !unit

package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/test/rig"
)

func TestFrozenServer(t *testing.T) {
	t.Parallel()
	srv := rig.MariaDB(t, rig.Own())
	d := newDesk(t, srv, func(c *Config) { c.LockLease = 3 * time.Second })
	lock, err := d.AcquireLock(t.Context(), d.Table.Database)
	require.NoError(t, err)
	srv.Pause(t)
	began := time.Now()
	select {
	case <-lock.Lost():
		assert.Less(t, time.Since(began), 3*time.Second, "before the server would give the lock to another")
	case <-time.After(10 * time.Second):
		t.Fatal("the loss was not noticed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = d.Offset(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	srv.Resume(t)
	_, err = d.Offset(t.Context())
	require.NoError(t, err)
	require.NoError(t, lock.Release(t.Context()))

	srv.Stop(t)
	_, err = d.MarkSent(t.Context(), d.Refs(1))
	require.ErrorIs(t, err, ErrUnreachable)
	assert.True(t, mysql.Retryable(err))
	waiting := make(chan error, 1) // the one result of the goroutine
	go func() {
		again, err := d.AcquireLock(t.Context(), d.Table.Database)
		if err == nil {
			err = again.Release(t.Context())
		}
		waiting <- err
	}()
	srv.Start(t)
	select {
	case err := <-waiting:
		require.NoError(t, err, "waiting for the lock outlives a restart of the server")
	case <-time.After(20 * time.Second):
		t.Fatal("the lock was not had after the restart")
	}
	_, err = d.MarkSent(t.Context(), d.Refs(1))
	require.NoError(t, err)
}
