package relay

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

// goneRows refuses everything about one table while it is gone.
type goneRows struct {
	*fakeRows
	table outbox.Table
	gone  atomic.Bool
}

func (r *goneRows) MarkSent(ctx context.Context, refs []outbox.Ref) (int64, error) {
	for _, ref := range refs {
		if ref.Table == r.table && r.gone.Load() {
			return 0, fmt.Errorf("mark: %w", store.ErrGone)
		}
	}
	return r.fakeRows.MarkSent(ctx, refs)
}

// A table that was dropped keeps its own rows unsettled, and nobody else's; when it is back they are marked.
func TestMissingTableHoldsItsOwnRowsOnly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := startMarker(t.Context())
		rows := &goneRows{fakeRows: b.rows, table: outbox.Table{Database: "app", Name: "gone"}}
		rows.gone.Store(true)
		b.marker.rows = rows
		for id := range uint64(10) {
			row := rowOf(id, "orders", "k")
			if id%2 == 0 {
				row.Table = rows.table
			}
			b.add(verdict{it: &item{ref: row.Ref()}, outcome: outcomeSent})
		}
		advance(t, time.Minute)
		require.Len(t, b.names(), 5)
		require.Equal(t, 5, b.depth())
		require.ErrorIs(t, b.err(), store.ErrGone)
		require.ErrorContains(t, b.err(), "5 rows wait")

		rows.gone.Store(false)
		advance(t, straysEvery+time.Second)
		require.Len(t, b.names(), 10)
		require.NoError(t, b.err())
		b.finish()
		require.NoError(t, <-b.ended)
	})
}

// A marker that is told to finish does not wait for a table that is gone.
func TestMissingTableDoesNotKeepAStopWaiting(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := startMarker(t.Context())
		rows := &goneRows{fakeRows: b.rows, table: rowOf(1, "orders", "k").Table}
		rows.gone.Store(true)
		b.marker.rows = rows
		b.give(outcomeSent, 1, 4)
		b.finish()
		require.NoError(t, <-b.ended)
		require.Empty(t, b.names())
	})
}
