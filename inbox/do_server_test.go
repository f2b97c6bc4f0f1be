//go:build !unit

package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
)

func TestHandledOnceThenDuplicate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		in := w.inbox(t, inbox.Config{})
		result, err := in.Do(t.Context(), message("m-1"), write("m-1"))
		require.NoError(t, err)
		assert.Equal(t, inbox.Handled, result)
		for range 2 {
			result, err = in.Do(t.Context(), message("m-1"), func(context.Context, *sql.Tx) error {
				return errors.New("the handler ran again")
			})
			require.NoError(t, err)
			assert.Equal(t, inbox.Duplicate, result)
		}
		assert.Equal(t, 1, w.effects(t))
		assert.Equal(t, 1, w.count(t, `SELECT COUNT(*) FROM consumed_message WHERE consumer_group = 'points' AND msg_id = 'm-1' AND topic = 'orders'
			AND partition_no = 2 AND record_offset = 41 AND ABS(TIMESTAMPDIFF(SECOND, consumed_at, UTC_TIMESTAMP())) < 60`))
	})
}

func TestGroupsAreIndependent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		for _, group := range []string{"points", "Points", "log'istics\\"} {
			result, err := w.inbox(t, inbox.Config{Group: group}).Do(t.Context(), message("m-1"), write("m-1"))
			require.NoError(t, err)
			assert.Equal(t, inbox.Handled, result, group)
		}
		assert.Equal(t, 3, w.effects(t))
	})
}

// Several deliveries of one message at the same moment: one handler runs, the others wait for its commit.
func TestDeliveriesAtTheSameMomentRunOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		const others = 7
		in := w.inbox(t, inbox.Config{})
		entered, leave := make(chan struct{}), make(chan struct{})
		var calls, handled, duplicates atomic.Int32
		deliver := func(started func()) {
			result, err := in.Do(t.Context(), message("m-1"), func(ctx context.Context, tx *sql.Tx) error {
				calls.Add(1)
				started()
				return write("m-1")(ctx, tx)
			})
			if err != nil {
				t.Error(err)
			}
			switch result {
			case inbox.Handled:
				handled.Add(1)
			case inbox.Duplicate:
				duplicates.Add(1)
			case inbox.None:
			}
		}
		var all sync.WaitGroup
		all.Go(func() { deliver(func() { close(entered); <-leave }) })
		<-entered
		for range others {
			all.Go(func() { deliver(func() {}) })
		}
		w.waiting(t, others)
		close(leave)
		all.Wait()
		assert.Equal(t, []int32{1, 1, others}, []int32{calls.Load(), handled.Load(), duplicates.Load()}, "calls, handled, duplicates")
		assert.Equal(t, 1, w.effects(t))
	})
}

// The second delivery takes over when the first one rolls back, and its handler sees what was committed while it waited: the
// record is the transaction's first statement, so the snapshot of REPEATABLE READ is taken after the wait.
func TestSecondTakesOverAfterARollbackWithAFreshSnapshot(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		in := w.inbox(t, inbox.Config{})
		entered, leave := make(chan struct{}), make(chan struct{})
		failure := errors.New("no stock")
		var all sync.WaitGroup
		all.Go(func() {
			result, err := in.Do(t.Context(), message("m-1"), func(ctx context.Context, tx *sql.Tx) error {
				close(entered)
				<-leave
				return errors.Join(write("m-1")(ctx, tx), failure)
			})
			if !errors.Is(err, failure) || result != inbox.None {
				t.Errorf("the first delivery: %s, %v", result, err)
			}
		})
		<-entered
		var seen int
		all.Go(func() {
			result, err := in.Do(t.Context(), message("m-1"), func(ctx context.Context, tx *sql.Tx) error {
				if err := tx.QueryRowContext(ctx, "SELECT n FROM counter WHERE name = 'a'").Scan(&seen); err != nil {
					return err
				}
				return write("m-1")(ctx, tx)
			})
			if err != nil || result != inbox.Handled {
				t.Errorf("the second delivery: %s, %v", result, err)
			}
		})
		w.waiting(t, 1)
		w.exec(t, "UPDATE counter SET n = 5 WHERE name = 'a'")
		close(leave)
		all.Wait()
		assert.Equal(t, 5, seen, "what was committed while the second delivery waited")
		assert.Equal(t, 1, w.effects(t))
	})
}

func TestErrorsAndPanicsRollTheRecordBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		in := w.inbox(t, inbox.Config{})
		failure := inbox.Permanent(errors.New("no such customer"))
		_, err := in.Do(t.Context(), message("m-1"), func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(write("m-1")(ctx, tx), failure)
		})
		require.ErrorIs(t, err, failure)
		require.ErrorContains(t, err, "handle message m-1")
		assert.True(t, inbox.IsPermanent(err))
		assert.Panics(t, func() {
			_, _ = in.Do(t.Context(), message("m-1"), func(ctx context.Context, tx *sql.Tx) error {
				assert.NoError(t, write("m-1")(ctx, tx))
				panic("a handler's mistake")
			})
		})
		assert.Zero(t, w.records(t))
		assert.Zero(t, w.effects(t))
		result, err := in.Do(t.Context(), message("m-1"), write("m-1"))
		require.NoError(t, err)
		assert.Equal(t, inbox.Handled, result)
	})
}

func TestEndedContextLeavesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		in := w.inbox(t, inbox.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		_, err := in.Do(ctx, message("m-1"), func(ctx context.Context, tx *sql.Tx) error {
			defer cancel()
			return write("m-1")(ctx, tx)
		})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, inbox.ErrUnknown)
		_, err = in.Do(ctx, message("m-1"), write("m-1"))
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, inbox.ErrUnavailable, "an ended context is no fault of the database")
		result, err := in.Do(t.Context(), message("m-1"), write("m-1"))
		require.NoError(t, err)
		assert.Equal(t, inbox.Handled, result)
		assert.Equal(t, 1, w.effects(t))
	})
}

func TestHandlerThatEndsTheTransactionIsTold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		in := w.inbox(t, inbox.Config{})
		_, err := in.Do(t.Context(), message("m-1"), func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(write("m-1")(ctx, tx), tx.Commit())
		})
		require.ErrorIs(t, err, inbox.ErrTxEnded)
		result, err := in.Do(t.Context(), message("m-1"), write("m-1"))
		require.NoError(t, err)
		assert.Equal(t, inbox.Duplicate, result, "it was committed, record and all")
		assert.Equal(t, 1, w.effects(t))
	})
}

// An id is the same only when its bytes are, whatever collation and SQL mode the server has.
func TestIDsAreComparedByteByByte(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		w.exec(t, "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'")
		in := w.inbox(t, inbox.Config{})
		ids := []string{
			"a1", "A1", "á1", "a1'", `a1\`, `a1\'`, `"a1"`, "a1; DROP TABLE effect", "订单-1", "a1\x00", "a 1", "ａ1", "😀",
			strings.Repeat("长", inbox.MaxID),
		}
		for _, id := range ids {
			result, err := in.Do(t.Context(), inbox.Delivery{ID: id}, write("x"))
			require.NoError(t, err, "%q", id)
			assert.Equal(t, inbox.Handled, result, "%q", id)
		}
		for _, id := range ids {
			result, err := in.Do(t.Context(), inbox.Delivery{ID: id}, write("x"))
			require.NoError(t, err, "%q", id)
			assert.Equal(t, inbox.Duplicate, result, "%q", id)
			assert.Equal(t, 1, w.count(t, "SELECT COUNT(*) FROM consumed_message WHERE HEX(msg_id) = ? AND topic IS NULL", fmt.Sprintf("%X", id)), "%q", id)
		}
	})
}
