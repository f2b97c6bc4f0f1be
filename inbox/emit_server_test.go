//go:build !unit

package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/outbox"
)

// Follow-up messages live and die with the handler's transaction, and a message that is handled again because its record is
// gone emits nothing new.
func TestEmitInTheHandlersTransaction(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		w.exec(t, outbox.Schema(outbox.Table{Name: "local_message"}, outbox.AllColumns()))
		box, err := outbox.New(outbox.Config{})
		require.NoError(t, err)
		in := w.inbox(t, inbox.Config{Outbox: box})
		var receipts []outbox.Receipt
		failure := errors.New("after the emit")
		handler := func(fail error) func(ctx context.Context, tx *sql.Tx) error {
			return func(ctx context.Context, tx *sql.Tx) (err error) {
				receipts, err = in.Emit(ctx, tx,
					outbox.Message{Topic: "points", Key: "7", Body: map[string]int{"points": 3}},
					outbox.Message{Topic: "points", Key: "7", Body: map[string]int{"points": 4}})
				return errors.Join(err, fail)
			}
		}
		rows := func() int { return w.count(t, "SELECT COUNT(*) FROM local_message") }
		_, err = in.Do(t.Context(), message("m-1"), handler(failure))
		require.ErrorIs(t, err, failure)
		assert.Zero(t, rows())
		_, err = in.Do(t.Context(), message("m-1"), handler(nil))
		require.NoError(t, err)
		assert.Equal(t, 2, rows())
		assert.Equal(t, 2, w.count(t, `SELECT COUNT(*) FROM local_message WHERE headers LIKE '%"causation_id":"m-1"%' AND status = 0`))
		assert.False(t, receipts[0].Duplicate || receipts[1].Duplicate)

		w.exec(t, "DELETE FROM consumed_message")
		_, err = in.Do(t.Context(), message("m-1"), handler(nil))
		require.NoError(t, err)
		assert.Equal(t, 2, rows())
		assert.True(t, receipts[0].Duplicate && receipts[1].Duplicate)
	})
}
