//go:build !unit

package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
)

func TestFirstInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		in := w.inbox(t, inbox.Config{})
		for _, commit := range []bool{false, true} { // rolled back, it is the first time again
			tx, err := w.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			first, err := in.First(t.Context(), tx, "m-1")
			require.NoError(t, err)
			assert.True(t, first)
			require.NoError(t, write("m-1")(t.Context(), tx))
			if commit {
				require.NoError(t, tx.Commit())
			} else {
				require.NoError(t, tx.Rollback())
			}
		}
		tx, err := w.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		first, err := in.First(t.Context(), tx, "m-1")
		require.NoError(t, err)
		assert.False(t, first)
		require.NoError(t, write("other")(t.Context(), tx), "the transaction is still good")
		require.NoError(t, tx.Commit())
		result, err := in.Do(t.Context(), message("m-1"), write("m-1"))
		require.NoError(t, err)
		assert.Equal(t, inbox.Duplicate, result, "First and Do share the record")
		assert.Equal(t, 2, w.effects(t))
	})
}

func TestFirstOnAConnectionWithItsOwnBegin(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		conn, err := w.db.Conn(t.Context())
		require.NoError(t, err)
		defer func() { assert.NoError(t, conn.Close()) }()
		_, err = conn.ExecContext(t.Context(), "BEGIN")
		require.NoError(t, err)
		first, err := w.inbox(t, inbox.Config{}).First(t.Context(), conn, "m-1")
		require.NoError(t, err)
		assert.True(t, first)
		_, err = conn.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
		assert.Zero(t, w.records(t))
	})
}

func TestFirstRefusesAPool(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		_, err := w.inbox(t, inbox.Config{}).First(t.Context(), w.db, "m-1")
		require.ErrorIs(t, err, inbox.ErrNoTx)
		require.NotErrorIs(t, err, inbox.ErrUnavailable)
		assert.Zero(t, w.records(t))
	})
}
