//go:build !unit

package acks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

func sentNames(messages []SentMessage) []string {
	ids := make([]string, len(messages))
	for i := range messages {
		ids[i] = messages[i].MsgID
	}
	return ids
}

func TestListUnreported(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newAckDesk(t, srv)
		for id, status := range map[string]int{"pending": 0, "failed": 2, "consumed": 3, "dead": 4} {
			d.Insert(t, id, status, "NULL")
		}
		d.Insert(t, "first", 1, "NULL")
		d.InsertTopic(t, "bill", "bills", 1, "NULL")
		d.Insert(t, "second", 1, "NULL")
		d.Insert(t, "retried", 1, "NOW()-INTERVAL 1 HOUR")
		d.Insert(t, "deferred", 1, "NOW()-INTERVAL 2 HOUR")
		d.Insert(t, "new", 1, "NULL")
		d.Exec(t, "UPDATE "+d.Name()+" SET update_time=NOW()+INTERVAL 1 HOUR WHERE msg_id='new'")
		list := func(q UnreportedQuery, limit int) ([]string, bool) {
			t.Helper()
			found, complete, err := d.ListUnreported(t.Context(), q, limit, 1_000_000)
			require.NoError(t, err)
			return sentNames(found), complete
		}
		for name, tc := range map[string]struct {
			query    UnreportedQuery
			limit    int
			want     []string
			complete bool
		}{
			"all":   {UnreportedQuery{For: 30 * time.Second}, 10, []string{"first", "bill", "second", "deferred", "retried"}, true},
			"topic": {UnreportedQuery{For: 30 * time.Second, Topic: "orders"}, 10, []string{"first", "second", "deferred", "retried"}, true},
			"limit": {UnreportedQuery{For: 30 * time.Second}, 2, []string{"first", "bill"}, false},
			"old":   {UnreportedQuery{For: time.Hour}, 10, []string{}, true},
			"any":   {UnreportedQuery{}, 10, []string{"first", "bill", "second", "new", "deferred", "retried"}, true},
		} {
			got, complete := list(tc.query, tc.limit)
			assert.Equal(t, tc.want, got, name)
			assert.Equal(t, tc.complete, complete, name)
		}
		d.consume(t, sharedRules, "points", "first", "deferred")
		got, _ := list(UnreportedQuery{Topic: "orders", Group: "points", Shared: true, For: time.Second}, 10)
		assert.Equal(t, []string{"second", "retried"}, got)
		got, _ = list(UnreportedQuery{Topic: "orders", Group: "logistics", Shared: true, For: time.Second}, 10)
		assert.Equal(t, []string{"first", "second", "deferred", "retried"}, got)
		found, _, err := d.ListUnreported(t.Context(), UnreportedQuery{For: time.Second}, 1, 1_000_000)
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now().Add(-time.Minute), found[0].MarkedAt, 30*time.Second)
		assert.Nil(t, found[0].Content)
	})
}

// A list looks at a bounded number of rows, and says that it has not looked at all.
func TestListUnreportedIsBounded(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Fill(t, 2*scanWindow+10, "bills", "NULL")
		d.Exec(t, "UPDATE "+d.Name()+" SET status=1, next_retry_time=IF(id%2=0, NULL, NOW())")
		d.Insert(t, "last", 1, "NULL")
		q := UnreportedQuery{Topic: "orders"}
		found, complete, err := d.ListUnreported(t.Context(), q, 5, scanWindow)
		require.NoError(t, err)
		assert.Empty(t, found)
		assert.False(t, complete)
		found, complete, err = d.ListUnreported(t.Context(), q, 5, 10*scanWindow)
		require.NoError(t, err)
		assert.Equal(t, []string{"last"}, sentNames(found))
		assert.True(t, complete)
		table := d.rows.Tables()[0]
		for _, l := range lanes(d.rows.Tables()) {
			at := store.SpotAt(100, "")
			if l.Timed {
				at.Due = "2020-01-01 00:00:00"
			}
			plan := d.Plan(t, "SELECT next_retry_time,id FROM "+table.From()+table.ByDue()+" WHERE "+d.rows.Behind(&table, l.Lane, at)+" ORDER BY "+table.Order(l.Lane)+" LIMIT 20000")
			assert.Contains(t, plan, `"using_index": true`)
			assert.NotContains(t, plan, `"using_filesort": true`)
			assert.NotContains(t, plan, `"filesort"`)
		}
	})
}

func TestOldestUnreported(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newAckDesk(t, srv)
		const group = "points"
		scan := NewUnreportedScan(UnreportedQuery{Topic: "orders", Group: group, Shared: true})
		oldest := func() string {
			t.Helper()
			found, complete, err := d.OldestUnreported(t.Context(), scan, 1_000_000)
			require.NoError(t, err)
			assert.True(t, complete)
			if found == nil {
				return ""
			}
			assert.NotEmpty(t, found.Content, "the key may be in it")
			return found.MsgID
		}
		assert.Empty(t, oldest())
		var refs []outbox.Ref
		for _, id := range []string{"a", "b", "c"} {
			refs = append(refs, d.Insert(t, id, 0, "NULL"))
		}
		d.InsertTopic(t, "bill", "bills", 1, "NULL")
		assert.Empty(t, oldest(), "nothing was sent")
		_, err := d.rows.MarkSent(t.Context(), refs[1:])
		require.NoError(t, err)
		assert.Equal(t, "b", oldest())
		assert.Equal(t, "b", oldest())
		d.consume(t, sharedRules, "logistics", "b", "c")
		assert.Equal(t, "b", oldest(), "that another group has reported it changes nothing")
		d.consume(t, sharedRules, group, "b")
		assert.Equal(t, "c", oldest())
		d.Insert(t, "deferred", 1, "NOW()-INTERVAL 1 HOUR")
		d.Exec(t, "UPDATE "+d.Name()+" SET create_time=NOW()-INTERVAL 2 HOUR WHERE msg_id='deferred'")
		assert.Equal(t, "deferred", oldest())
		d.consume(t, sharedRules, group, "deferred", "c")
		assert.Empty(t, oldest())
		_, err = d.rows.MarkSent(t.Context(), refs[:1])
		require.NoError(t, err)
		assert.Equal(t, "a", oldest(), "it was sent after younger ones")
		d.Exec(t, "DELETE FROM "+d.Name()+" WHERE msg_id='a'")
		assert.Empty(t, oldest())
	})
}

// A scan goes on where it was, so that a large table is looked at once.
func TestOldestUnreportedStepByStep(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Fill(t, 2*scanWindow+10, "bills", "NULL")
		d.Insert(t, "last", 0, "NULL")
		d.Exec(t, "UPDATE "+d.Name()+" SET status=1")
		scan := NewUnreportedScan(UnreportedQuery{Topic: "orders", Group: "points"})
		steps := 0
		for ; steps < 10; steps++ {
			found, complete, err := d.OldestUnreported(t.Context(), scan, scanWindow)
			require.NoError(t, err)
			if found != nil {
				assert.Equal(t, "last", found.MsgID)
				break
			}
			assert.False(t, complete)
		}
		assert.Equal(t, 2, steps)
		// What is sent long after younger ones is found when the scan begins anew.
		d.Exec(t, "UPDATE "+d.Name()+" SET status=3 WHERE msg_id='last'")
		d.Exec(t, "UPDATE "+d.Name()+" SET topic='orders' WHERE id=5")
		found, complete, err := d.OldestUnreported(t.Context(), scan, 10*scanWindow)
		require.NoError(t, err)
		assert.Nil(t, found)
		assert.True(t, complete)
		scan.Restart()
		found, _, err = d.OldestUnreported(t.Context(), scan, 10*scanWindow)
		require.NoError(t, err)
		require.NotNil(t, found)
		assert.EqualValues(t, 5, found.ID)
	})
}
