//go:build !unit

package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

func TestClosedTopics(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.InsertTopic(t, "1", "failed waits", 2, "NOW()+INTERVAL 1 DAY")
		d.InsertTopic(t, "2", "failed", 2, "NULL")
		d.InsertTopic(t, "3", "deferred", 0, "NOW()-INTERVAL 1 MINUTE")
		claimed := d.InsertTopic(t, "4", "claimed", 0, "NOW()")
		d.InsertTopic(t, "10", "nearly due", 0, "NOW()+INTERVAL 20 SECOND")
		d.InsertTopic(t, "5", "delayed", 0, "NOW()+INTERVAL 1 DAY")
		d.InsertTopic(t, "6", "pending", 0, "NULL")
		d.InsertTopic(t, "7", "Pending", 0, "NULL")
		d.InsertTopic(t, "8", "sent", 1, "NOW()")
		d.InsertTopic(t, "9", "dead", 4, "NULL")
		rows, err := d.Claim(t.Context(), []outbox.Ref{claimed}, 30*time.Second)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		topics, err := d.ClosedTopics(t.Context(), 30*time.Second, false)
		require.NoError(t, err)
		assert.Equal(t, []string{"claimed", "deferred", "failed", "failed waits"}, topics)
		topics, err = d.ClosedTopics(t.Context(), 30*time.Second, true)
		require.NoError(t, err)
		assert.Equal(t, []string{"Pending", "claimed", "deferred", "delayed", "failed", "failed waits", "nearly due", "pending"}, topics)
	})
}

func TestDeferGivesRowsToTheSweeper(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		pending, failed, sent := d.Insert(t, "p", 0, "NULL"), d.Insert(t, "f", 2, "NULL"), d.Insert(t, "s", 1, "NULL")
		wrong := pending
		wrong.MsgID = "x"
		require.NoError(t, d.Defer(t.Context(), []outbox.Ref{wrong}))
		assert.False(t, d.state(t, pending).HasNext)
		require.NoError(t, d.Defer(t.Context(), []outbox.Ref{pending, failed, sent}))
		assert.Equal(t, state{HasNext: true}, d.state(t, pending))
		assert.Equal(t, state{Status: 2}, d.state(t, failed), "a failed row has its own time")
		assert.Equal(t, state{Status: 1}, d.state(t, sent))
		found, err := d.Lookup(t.Context(), []outbox.Ref{pending, failed, sent, wrong})
		require.NoError(t, err)
		assert.Equal(t, map[outbox.Ref]Found{
			pending: {Status: outbox.Pending, HasNextRetry: true}, failed: {Status: outbox.Failed}, sent: {Status: outbox.Sent},
		}, found)
	})
}

func TestCountIsBoundedAndKnowsTheOldest(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		counts, oldest, err := d.Count(t.Context())
		require.NoError(t, err)
		assert.Zero(t, oldest)
		assert.Zero(t, counts[outbox.Pending])
		for i := range 3 {
			d.Insert(t, fmt.Sprint("p", i), 0, "NULL")
		}
		d.Insert(t, "dead", 4, "NULL")
		d.Insert(t, "deferred", 0, "NOW()-INTERVAL 1 HOUR")
		d.Exec(t, "UPDATE "+d.Name()+" SET create_time=NOW()-INTERVAL 2 HOUR WHERE msg_id='deferred'")
		counts, oldest, err = d.Count(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 4, counts[outbox.Pending])
		assert.EqualValues(t, 1, counts[outbox.Dead])
		assert.InDelta(t, (2 * time.Hour).Seconds(), oldest.Seconds(), 10)
	})
}

// TestABacklogOfManyRowsIsCheap is the budget of a start after a long outage, for 200k rows; the design's million takes
// five times as long.
func TestABacklogOfManyRowsIsCheap(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Fill(t, 200_000, "no such topic", "IF(id%2=0,NULL,NOW())")
		d.InsertTopic(t, "good", "good", 0, "NOW()")
		for name, call := range map[string]func(){
			"closed topics": func() {
				topics, err := d.ClosedTopics(t.Context(), time.Minute, true)
				require.NoError(t, err)
				assert.Equal(t, []string{"good", "no such topic"}, topics)
			},
			"candidates without the topic": func() {
				assert.Equal(t, []string{"good"}, msgIDs(d.candidates(t, Query{Except: []string{"no such topic"}})))
			},
			"oldest of the topic": func() {
				assert.Len(t, d.candidates(t, Query{Only: "no such topic", OldestOnly: true}), 1)
			},
			"backlog": func() {
				refs, err := d.Backlog(t.Context(), Query{Only: "no such topic", Limit: 50_000})
				require.NoError(t, err)
				require.Len(t, refs, 50_000)
				assert.EqualValues(t, 50_000, refs[len(refs)-1].ID)
			},
			"count": func() {
				_, _, err := d.Count(t.Context())
				require.NoError(t, err)
			},
			"next due": func() {
				_, _, err := d.NextDue(t.Context())
				require.NoError(t, err)
			},
		} {
			start := time.Now()
			call()
			took := time.Since(start)
			t.Logf("%s: %s", name, took)
			assert.Less(t, took, 5*time.Second, name)
		}
	})
}
