//go:build !unit

package mysql

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

func TestLockHasOneHolderAndIsHandedOn(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		source := strings.Repeat("a long source name ", 5) + d.database
		held, _, err := d.LockHolder(t.Context(), source)
		require.NoError(t, err)
		assert.False(t, held)

		first, err := d.AcquireLock(t.Context(), source)
		require.NoError(t, err)
		held, who, err := d.LockHolder(t.Context(), source)
		require.NoError(t, err)
		assert.True(t, held)
		assert.Contains(t, who, "connection ")
		assert.Contains(t, who, " from ")

		standby := open(t, d.cfg)
		impatient, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err = standby.AcquireLock(impatient, source)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		other, err := standby.AcquireLock(t.Context(), source+"2")
		require.NoError(t, err, "another source has another lock, also behind the 64th character")
		require.NoError(t, other.Release(t.Context()))

		handed := make(chan *Lock, 1) // the one result of the goroutine
		go func() {
			second, err := standby.AcquireLock(t.Context(), source)
			assert.NoError(t, err)
			handed <- second
		}()
		require.NoError(t, first.Release(t.Context()))
		require.NoError(t, first.Release(t.Context()), "twice is harmless")
		select {
		case second := <-handed:
			require.NoError(t, second.Release(t.Context()))
		case <-time.After(10 * time.Second):
			t.Fatal("the standby did not get the lock")
		}
		select {
		case <-first.Lost():
			t.Fatal("released is not lost")
		default:
		}
	})
}

func TestLockKilledByHandIsLostAndFree(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.lease = 2 * time.Second
		lock, err := d.AcquireLock(t.Context(), d.database)
		require.NoError(t, err)
		_, who, err := d.LockHolder(t.Context(), d.database)
		require.NoError(t, err)
		var id int64
		_, err = fmt.Sscanf(who, "connection %d", &id)
		require.NoError(t, err)
		d.exec(t, fmt.Sprintf("KILL %d", id))
		select {
		case <-lock.Lost():
		case <-time.After(5 * time.Second):
			t.Fatal("the loss was not noticed")
		}
		next, err := d.AcquireLock(t.Context(), d.database)
		require.NoError(t, err)
		require.NoError(t, next.Release(t.Context()))
		require.NoError(t, lock.Release(t.Context()), "a lost lock is released quietly")
	})
}

func TestLockOfASilentHolderEndsByItself(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.lease = 2 * time.Second
		lock, err := d.AcquireLock(t.Context(), d.database)
		require.NoError(t, err)
		// What a stopped process or a half-open connection looks like from the server: no ping any more.
		close(lock.stop)
		<-lock.done
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		next, err := d.AcquireLock(ctx, d.database)
		require.NoError(t, err)
		require.NoError(t, next.Release(t.Context()))
		require.Error(t, lock.ping(t.Context(), time.Second), "and the silent one would notice at its next ping")
		_ = lock.conn.Close() // closed already where the ping saw the connection die
		require.NoError(t, lock.db.Close())
	})
}

func TestLockIsKeptForLongerThanItsLease(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.lease = 2 * time.Second
		lock, err := d.AcquireLock(t.Context(), d.database)
		require.NoError(t, err)
		select {
		case <-lock.Lost():
			t.Fatal("lost though it was pinged")
		case <-time.After(5 * time.Second):
		}
		held, _, err := d.LockHolder(t.Context(), d.database)
		require.NoError(t, err)
		assert.True(t, held)
		require.NoError(t, lock.Release(t.Context()))
	})
}

func TestAcquireLockFailsForGoodWithoutALogin(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.cfg.Password = "canary-secret"
		_, err := d.AcquireLock(t.Context(), "x")
		require.ErrorIs(t, err, ErrPrivilege)
		assert.NotContains(t, err.Error(), "canary")
		assert.NotErrorIs(t, err, ErrUnreachable)
	})
}

// A session of anybody's that runs a statement with an emoji keeps MySQL from listing sessions.
func TestLockHolderWhileTheSessionsCannotBeListed(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		source := d.database
		lock, err := d.AcquireLock(t.Context(), source)
		require.NoError(t, err)
		defer func() { assert.NoError(t, lock.Release(context.WithoutCancel(t.Context()))) }()
		busy, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for busy.Err() == nil {
				_, _ = srv.DB(t).ExecContext(busy, "DO SLEEP(10) /* \U0001F600 */")
			}
		}()
		defer func() { stop(); <-ended }()
		for deadline := time.Now().Add(300 * time.Millisecond); time.Now().Before(deadline); {
			held, who, err := d.LockHolder(t.Context(), source)
			require.NoError(t, err)
			assert.True(t, held)
			assert.Contains(t, who, "connection ")
		}
	})
}
