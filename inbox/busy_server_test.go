//go:build !unit

package inbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
)

// Two handlers lock two rows crosswise. The server kills one; its whole transaction runs again.
func TestDeadlockIsRetried(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		in := w.inbox(t, inbox.Config{})
		var calls atomic.Int32
		var both sync.WaitGroup
		both.Add(2)
		lock := func(first, second string) func(ctx context.Context, tx *sql.Tx) error {
			met := false
			return func(ctx context.Context, tx *sql.Tx) error {
				calls.Add(1)
				if _, err := tx.ExecContext(ctx, "UPDATE counter SET n = n + 1 WHERE name = ?", first); err != nil {
					return err
				}
				if !met {
					met = true
					both.Done()
					both.Wait()
				}
				_, err := tx.ExecContext(ctx, "UPDATE counter SET n = n + 1 WHERE name = ?", second)
				return err
			}
		}
		var all sync.WaitGroup
		for id, handler := range map[string]func(ctx context.Context, tx *sql.Tx) error{"m-1": lock("a", "b"), "m-2": lock("b", "a")} {
			all.Go(func() {
				result, err := in.Do(t.Context(), message(id), handler)
				if err != nil || result != inbox.Handled {
					t.Errorf("%s: %s, %v", id, result, err)
				}
			})
		}
		all.Wait()
		assert.GreaterOrEqual(t, calls.Load(), int32(3), "one ran again")
		assert.Equal(t, 4, w.count(t, "SELECT SUM(n) FROM counter"), "each effect once")
		assert.Equal(t, 2, w.records(t))
	})
}

// A handler that says itself when, or never, to try again is not second-guessed because of a deadlock in its chain.
func TestDeadlockInAMarkedErrorIsTheHandlersToJudge(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		in := w.inbox(t, inbox.Config{})
		deadlock := &mysql.MySQLError{Number: 1213, Message: "Deadlock found"}
		for _, marked := range []error{inbox.Permanent(deadlock), inbox.RetryAfter(limit, deadlock)} {
			calls := 0
			_, err := in.Do(t.Context(), message("m-1"), func(context.Context, *sql.Tx) error { calls++; return marked })
			require.ErrorIs(t, err, marked)
			assert.Equal(t, 1, calls)
		}
	})
}

// The wait for another delivery ends by the server's time-out; it is tried again, and takes over once that one is gone.
func TestLockWaitIsRetriedThenGivenUp(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		w.db = w.open(t, func(cfg *mysql.Config) { cfg.Params = map[string]string{"innodb_lock_wait_timeout": "1"} })
		holder, err := w.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		first, err := w.inbox(t, inbox.Config{}).First(t.Context(), holder, "m-1")
		require.NoError(t, err)
		require.True(t, first)

		_, err = w.inbox(t, inbox.Config{Tries: 1}).Do(t.Context(), message("m-1"), write("m-1"))
		require.ErrorIs(t, err, inbox.ErrBusy)
		require.ErrorIs(t, err, inbox.ErrUnavailable, "it says nothing about the message")

		release := sync.OnceFunc(func() { assert.NoError(t, holder.Rollback()) })
		patient := w.inbox(t, inbox.Config{Number: func(err error) uint16 {
			number := inbox.NumberOf(err)
			if number == 1205 {
				release()
			}
			return number
		}})
		result, err := patient.Do(t.Context(), message("m-1"), write("m-1"))
		require.NoError(t, err)
		assert.Equal(t, inbox.Handled, result)
		assert.Equal(t, 1, w.effects(t))
	})
}

// A consumer that froze in its handler holds its message no longer than its session's wait_timeout.
func TestFrozenConsumerIsTakenOverAfterItsWaitTimeout(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		frozen := w.open(t, func(cfg *mysql.Config) { cfg.Params = map[string]string{"wait_timeout": "1"} })
		tx, err := frozen.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		in := w.inbox(t, inbox.Config{})
		first, err := in.First(t.Context(), tx, "m-1")
		require.NoError(t, err)
		require.True(t, first)
		require.NoError(t, write("m-1")(t.Context(), tx))
		result, err := in.Do(t.Context(), message("m-1"), write("m-1"))
		require.NoError(t, err)
		assert.Equal(t, inbox.Handled, result)
		require.Error(t, tx.Commit(), "whoever wakes up is told that it is too late")
		assert.Equal(t, 1, w.effects(t))
	})
}

// commitEater is a connection on which COMMIT gets no answer: the server does it (sent), or never hears of it.
type commitEater struct {
	net.Conn
	armed *atomic.Bool
	sent  bool
	eaten bool
}

func (c *commitEater) Write(p []byte) (int, error) {
	if !c.armed.Load() || !bytes.Contains(p, []byte("COMMIT")) {
		return c.Conn.Write(p)
	}
	c.armed.Store(false)
	c.eaten = true
	if c.sent {
		if _, err := c.Conn.Write(p); err != nil {
			return 0, err
		}
		// The server's answer proves that it has committed.
		if _, err := c.Conn.Read(make([]byte, 64)); err != nil {
			return 0, err
		}
	}
	return len(p), c.Close()
}

func (c *commitEater) Read(p []byte) (int, error) {
	if c.eaten {
		return 0, io.ErrUnexpectedEOF
	}
	return c.Conn.Read(p)
}

// The answer to COMMIT is lost. Do can't know; the next delivery does.
func TestLostAnswerAtCommitIsUnknownAndRedeliveryDecides(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		for id, sent := range map[string]bool{"arrived": true, "lost": false} {
			var armed atomic.Bool
			db := w.open(t, dialer(func(conn net.Conn) net.Conn { return &commitEater{Conn: conn, armed: &armed, sent: sent} }))
			in, err := inbox.New(db, inbox.Config{Group: "points"})
			require.NoError(t, err)
			armed.Store(true)
			result, err := in.Do(t.Context(), message(id), write(id))
			require.ErrorIs(t, err, inbox.ErrUnknown, id)
			require.NotErrorIs(t, err, inbox.ErrUnavailable, id)
			assert.Equal(t, inbox.None, result)
			result, err = in.Do(t.Context(), message(id), write(id))
			require.NoError(t, err, id)
			assert.Equal(t, sent, result == inbox.Duplicate, id)
			assert.Equal(t, 1, w.count(t, "SELECT COUNT(*) FROM effect WHERE msg_id = ?", id), id)
		}
	})
}

func TestConnectionLostUnderTheHandlerIsNotTheMessages(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		in := w.inbox(t, inbox.Config{})
		_, err := in.Do(t.Context(), message("m-1"), func(ctx context.Context, tx *sql.Tx) error {
			var id int
			if err := tx.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
				return err
			}
			if _, err := w.db.ExecContext(ctx, fmt.Sprintf("KILL %d", id)); err != nil {
				return err
			}
			err := write("m-1")(ctx, tx)
			if err == nil {
				t.Error("the connection should be gone")
			}
			return inbox.Permanent(errors.Join(errors.New("taken for a bad message"), err))
		})
		require.ErrorIs(t, err, inbox.ErrUnavailable)
		assert.Zero(t, w.records(t))
	})
}

func TestMissingTableSaysWhatToDo(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		in := w.inbox(t, inbox.Config{Table: w.database + ".elsewhere"})
		_, err := in.Do(t.Context(), message("m-1"), write("m-1"))
		require.ErrorIs(t, err, inbox.ErrUnavailable)
		require.ErrorContains(t, err, "error 1146")
		require.ErrorContains(t, err, "inbox.Schema")
		var own *inbox.Error
		require.ErrorAs(t, err, &own)
		assert.Equal(t, uint16(1146), own.Number)
		var server *mysql.MySQLError
		require.ErrorAs(t, err, &server, "the driver's error is in the chain")
	})
}
