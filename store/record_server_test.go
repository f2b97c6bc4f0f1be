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

func TestUnrecordedRowsAreFoundUntilDeferred(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		last, err := d.LastIDs(t.Context())
		require.NoError(t, err)
		assert.Empty(t, last)

		first := d.Insert(t, "first", 0, "NULL")
		second := d.Insert(t, "second", 0, "NULL")
		d.Insert(t, "sent", 1, "NULL")
		d.Insert(t, "failed", 2, "NOW()")
		d.Insert(t, "deferred", 0, "NOW()")
		last, err = d.LastIDs(t.Context())
		require.NoError(t, err)
		d.Insert(t, "later", 0, "NULL")

		refs, err := d.Unrecorded(t.Context(), last, 10)
		require.NoError(t, err)
		assert.Equal(t, []outbox.Ref{first, second}, refs)
		refs, err = d.Unrecorded(t.Context(), last, 1)
		require.NoError(t, err)
		assert.Equal(t, []outbox.Ref{first}, refs)
		require.NoError(t, d.Defer(t.Context(), []outbox.Ref{first, second}))
		refs, err = d.Unrecorded(t.Context(), last, 10)
		require.NoError(t, err)
		assert.Empty(t, refs)
	})
}

func TestBacklogOfDeferredRowsLeavesTheStreamItsOwn(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Insert(t, "streamed", 0, "NULL")
		deferred := d.Insert(t, "deferred", 0, "NOW()")
		failed := d.Insert(t, "failed", 2, "NOW() + INTERVAL 1 HOUR")
		d.Insert(t, "delayed", 0, "NOW() + INTERVAL 30 SECOND")
		refs, err := d.Backlog(t.Context(), Query{Only: "orders", Early: true, Deferred: true, Limit: 10})
		require.NoError(t, err)
		assert.Equal(t, []outbox.Ref{deferred, failed}, refs)
		claimed, err := d.ClaimedTopics(t.Context(), time.Minute)
		require.NoError(t, err)
		assert.Empty(t, claimed, "a delayed message is no claim")
		rows, err := d.Claim(t.Context(), []outbox.Ref{deferred}, time.Minute)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		claimed, err = d.ClaimedTopics(t.Context(), time.Minute)
		require.NoError(t, err)
		assert.Equal(t, []string{"orders"}, claimed)
	})
}

// TestNewShardIsMarked: a shard that was created after the start is marked like the others.
func TestNewShardIsMarked(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv, func(c *Config) {
			c.Tables = []string{c.Tables[0][:len(c.Tables[0])-len("local_message")] + `/local_message(_\d+)?/`}
		})
		shard := outbox.Table{Database: d.Table.Database, Name: "local_message_7"}
		d.Exec(t, "CREATE TABLE "+outbox.QuoteTable(shard)+" LIKE "+d.Name())
		d.Exec(t, "INSERT INTO "+outbox.QuoteTable(shard)+
			" (msg_id, topic, msg_content, status, create_time, update_time) VALUES ('m', 'orders', '{}', 0, NOW(), NOW())")
		changed, err := d.MarkSent(t.Context(), []outbox.Ref{{Table: shard, ID: 1, MsgID: "m"}})
		require.NoError(t, err)
		assert.Equal(t, int64(1), changed)
	})
}

func TestCandidatesFromAMomentOn(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Insert(t, "old", 0, "NOW() - INTERVAL 1 HOUR")
		d.Insert(t, "failed-long-ago", 2, "NOW() - INTERVAL 1 HOUR")
		without := d.Insert(t, "without", 0, "NULL")
		now, err := d.Now(t.Context())
		require.NoError(t, err)
		due := d.Insert(t, "due", 0, "NOW()")
		rows, err := d.Candidates(t.Context(), Query{Limit: 10, DueFrom: now})
		require.NoError(t, err)
		var refs []outbox.Ref
		for i := range rows {
			refs = append(refs, rows[i].Ref())
		}
		assert.ElementsMatch(t, []outbox.Ref{without, due}, refs)
		rows, err = d.Candidates(t.Context(), Query{Limit: 10})
		require.NoError(t, err)
		assert.Len(t, rows, 4)
	})
}
