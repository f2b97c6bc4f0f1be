//go:build !unit

package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// A table that is gone is no reason to leave out the others, although the tables can't be looked for again: it is named.
func TestTheOthersOfATableThatIsGone(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		gone := outbox.Table{Database: d.Table.Database, Name: "gone"}
		d.Exec(t, "CREATE TABLE "+outbox.QuoteTable(gone)+" LIKE "+d.Name())
		d.cfg.Tables = append(d.cfg.Tables, gone.String())
		s := open(t, d.cfg)
		pending := d.Insert(t, "pending", 0, "NULL")
		failed := d.Insert(t, "failed", 2, "NULL")
		later := d.Insert(t, "later", 0, "NOW() + INTERVAL 1 HOUR")
		require.NoError(t, s.Park(t.Context(), []Parking{{Ref: d.Insert(t, "parked", 0, "NULL"), Slot: 7}}))
		last, err := s.LastIDs(t.Context())
		require.NoError(t, err)
		last[gone] = 1
		d.Exec(t, "DROP TABLE "+outbox.QuoteTable(gone))
		require.ErrorIs(t, s.Refresh(t.Context()), ErrGone)

		rows, err := s.Candidates(t.Context(), Query{Limit: 10})
		require.NoError(t, err)
		assert.Len(t, rows, 2)
		rows, err = s.Candidates(t.Context(), Query{Only: "orders", OldestOnly: true})
		require.NoError(t, err)
		require.Len(t, rows, 1)
		assert.Equal(t, pending, rows[0].Ref())
		refs, err := s.Backlog(t.Context(), Query{Only: "orders", Early: true, Deferred: true})
		require.NoError(t, err)
		assert.Equal(t, []outbox.Ref{failed}, refs)
		topics, err := s.ClosedTopics(t.Context(), 30*time.Second, false)
		require.NoError(t, err)
		assert.Equal(t, []string{"orders"}, topics)
		_, ok, err := s.NextDue(t.Context())
		require.NoError(t, err)
		assert.True(t, ok, "%s is due some time", later.MsgID)
		rows, err = s.Parked(t.Context(), 7, 10)
		require.NoError(t, err)
		assert.Len(t, rows, 1)
		_, err = s.LastIDs(t.Context())
		require.NoError(t, err)
		refs, err = s.Unrecorded(t.Context(), last, 10)
		require.NoError(t, err)
		assert.Equal(t, []outbox.Ref{pending}, refs)
	})
}
