//go:build !unit

package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

func TestCandidatesAreWhatIsDue(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Insert(t, "failed 1 min ago", 2, "NOW()-INTERVAL 1 MINUTE")
		d.Insert(t, "pending", 0, "NULL")
		d.Insert(t, "deferred 2 min ago", 0, "NOW()-INTERVAL 2 MINUTE")
		d.Insert(t, "failed without time", 2, "NULL")
		d.Insert(t, "delayed", 0, "NOW()+INTERVAL 1 HOUR")
		d.Insert(t, "failed, waiting", 2, "NOW()+INTERVAL 1 HOUR")
		for _, status := range []int{1, 3, 4, 5, 7} {
			d.Insert(t, fmt.Sprintf("status %d", status), status, "NOW()-INTERVAL 1 HOUR")
		}
		assert.Equal(t, []string{"pending", "failed without time", "deferred 2 min ago", "failed 1 min ago"}, msgIDs(d.candidates(t, Query{})))
		assert.Equal(t, []string{"pending", "failed without time", "deferred 2 min ago"}, msgIDs(d.candidates(t, Query{Limit: 3})))
		assert.Equal(t, []string{"pending"}, msgIDs(d.candidates(t, Query{Limit: 1})))
		assert.Equal(t, []string{"pending", "deferred 2 min ago"}, msgIDs(d.candidates(t, Query{Pending: true})))
		assert.Equal(t, []string{"failed without time", "failed 1 min ago"}, msgIDs(d.candidates(t, Query{Failed: true})))
		assert.Len(t, d.candidates(t, Query{Failed: true, Pending: true}), 4)
		assert.Equal(t, []string{"failed 1 min ago", "pending", "deferred 2 min ago", "failed without time"}, msgIDs(d.candidates(t, Query{Only: "orders"})), "by id")
		assert.Empty(t, d.candidates(t, Query{Only: "Orders"}), "Kafka's topics differ by case")
		assert.Len(t, d.candidates(t, Query{Except: []string{"Orders", "it's"}}), 4)
		assert.Empty(t, d.candidates(t, Query{Except: []string{"orders"}}))
	})
}

func TestCandidatesLeaveFreshRowsToTheStream(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		for msgID, created := range map[string]string{"old": "NOW()-INTERVAL 10 MINUTE", "fresh": "NOW()", "another zone": "NOW()+INTERVAL 8 HOUR"} {
			d.Insert(t, msgID, 0, "NULL")
			d.Exec(t, "UPDATE "+d.Name()+" SET create_time="+created+" WHERE msg_id='"+msgID+"'")
		}
		d.Insert(t, "deferred", 0, "NOW()")
		d.Exec(t, "UPDATE "+d.Name()+" SET create_time=NOW() WHERE msg_id='deferred'")
		assert.ElementsMatch(t, []string{"old", "another zone", "deferred"}, msgIDs(d.candidates(t, Query{Grace: 5 * time.Minute})))
		assert.ElementsMatch(t, []string{"old", "another zone", "deferred"}, msgIDs(d.candidates(t, Query{Grace: 5 * time.Minute, Only: "orders"})))
		assert.Len(t, d.candidates(t, Query{}), 4)
	})
}

func TestCandidatesOfATopicWaitForItsOldest(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Insert(t, "delayed", 0, "NOW()+INTERVAL 1 HOUR")
		head := d.Insert(t, "probe that failed", 2, "NOW()+INTERVAL 1 HOUR")
		d.Insert(t, "deferred", 0, "NOW()")
		probe := Query{Only: "orders", OldestOnly: true}
		assert.Empty(t, d.candidates(t, probe), "what stands behind the failed one must not pass it")
		d.Exec(t, "UPDATE "+d.Name()+" SET next_retry_time=NOW() WHERE msg_id='probe that failed'")
		assert.Equal(t, []string{"probe that failed"}, msgIDs(d.candidates(t, probe)))
		require.NoError(t, d.MarkDead(t.Context(), []Failure{{Ref: head}}))
		assert.Equal(t, []string{"deferred"}, msgIDs(d.candidates(t, probe)))
		assert.Empty(t, d.candidates(t, Query{Only: "other", OldestOnly: true}))
	})
}

func TestEarlyTakesFailedRowsBeforeTheirTime(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Insert(t, "failed", 2, "NOW()+INTERVAL 1 HOUR")
		d.Insert(t, "deferred", 0, "NOW()")
		d.Insert(t, "delayed", 0, "NOW()+INTERVAL 1 HOUR")
		refs, err := d.Backlog(t.Context(), Query{Only: "orders"})
		require.NoError(t, err)
		assert.Len(t, refs, 1)
		refs, err = d.Backlog(t.Context(), Query{Only: "orders", Early: true})
		require.NoError(t, err)
		require.Len(t, refs, 2)
		rows, err := d.Claim(t.Context(), refs, time.Minute)
		require.NoError(t, err)
		assert.Equal(t, []string{"deferred"}, msgIDs(rows))
		rows, err = d.ClaimEarly(t.Context(), refs, time.Minute)
		require.NoError(t, err)
		assert.Equal(t, []string{"failed"}, msgIDs(rows))
	})
}

func TestS90SelectionHasNoIDWatermark(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		tx, err := d.DB.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "INSERT INTO "+d.Name()+" (msg_id,topic,msg_content,status,create_time,update_time) VALUES ('first id','t','{}',0,NOW(),NOW())")
		require.NoError(t, err)
		later := []outbox.Ref{d.Insert(t, "b", 0, "NULL"), d.Insert(t, "c", 0, "NULL")}
		assert.Equal(t, []string{"b", "c"}, msgIDs(d.candidates(t, Query{})))
		claimed, err := d.Claim(t.Context(), later, time.Minute)
		require.NoError(t, err)
		require.Len(t, claimed, 2)
		_, err = d.MarkSent(t.Context(), later)
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		assert.Equal(t, []string{"first id"}, msgIDs(d.candidates(t, Query{})))
	})
}

func TestS93PoisonRowsDoNotFillTheBatch(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		for i := range 150 {
			d.InsertTopic(t, fmt.Sprintf("poison%d", i), "no such topic", 2-2*(i%2), "NOW()-INTERVAL 1 HOUR")
		}
		for i := range 50 {
			d.Insert(t, fmt.Sprintf("good%d", i), 0, "NOW()-INTERVAL 1 MINUTE")
		}
		require.Len(t, d.candidates(t, Query{Limit: 100}), 100)
		good := d.candidates(t, Query{Limit: 100, Except: []string{"no such topic"}})
		require.Len(t, good, 50)
		assert.Equal(t, "orders", good[0].Topic)
	})
}

func TestCandidatesOfSeveralTablesTakeTurns(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Exec(t, "CREATE TABLE "+mysql.Identifier(d.Table.Database)+".local_message_2 LIKE "+d.Name())
		d.Exec(t, "CREATE TABLE "+mysql.Identifier(d.Table.Database)+".xlocal_message_3 LIKE "+d.Name())
		for i := range 10 {
			d.Insert(t, fmt.Sprintf("m%d", i), 0, "NULL")
		}
		d.Exec(t, "INSERT INTO "+mysql.Identifier(d.Table.Database)+".local_message_2 SELECT * FROM "+d.Name())
		cfg := d.cfg
		cfg.Tables = []string{d.Table.Database + `./local_message(_\d+)?/`}
		s := open(t, cfg)
		require.Len(t, s.Tables(), 2)
		asked := map[string]bool{}
		for range 2 {
			rows, err := s.Candidates(t.Context(), Query{Limit: 5})
			require.NoError(t, err)
			require.Len(t, rows, 5)
			asked[rows[0].Table.Name] = true
		}
		assert.Len(t, asked, 2, "a full table does not starve its neighbour")
		rows, err := s.Candidates(t.Context(), Query{Limit: 15})
		require.NoError(t, err)
		assert.Len(t, rows, 15)
		refs := make([]outbox.Ref, len(rows))
		for i := range rows {
			refs[i] = rows[i].Ref()
		}
		changed, err := s.MarkSent(t.Context(), refs)
		require.NoError(t, err)
		assert.EqualValues(t, 15, changed)
	})
}

// TestPlansNeverReadTheWholeTable reads the plan of every statement that searches, on a table whose statistics are as
// misleading as they get.
func TestPlansNeverReadTheWholeTable(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Exec(t, "ALTER TABLE "+d.Name()+" STATS_PERSISTENT=1, STATS_AUTO_RECALC=0")
		d.Exec(t, "ANALYZE TABLE "+d.Name()) // of an empty table: the optimizer believes that a scan costs nothing
		d.Fill(t, 200_000, "orders", "IF(RAND()<0.5,NULL,NOW())")
		d.Exec(t, "UPDATE "+d.Name()+" SET status=1 WHERE id%10<>0")
		tables := d.Tables()
		table := &tables[0]
		require.Equal(t, "idx_status_retry", table.due)
		require.Equal(t, "PRIMARY", table.primary)
		query := Query{Grace: 5 * time.Second, Except: []string{"x"}, Limit: 500}
		only := Query{Only: "orders", Limit: 500, Early: true}
		refs := []outbox.Ref{{ID: 10, MsgID: "a"}, {ID: 20, MsgID: "b"}}
		for name, statement := range map[string]string{
			"pending without time": d.rangeQuery(table, query, outbox.Pending, true, "", 500),
			"pending with time":    d.rangeQuery(table, query, outbox.Pending, false, "", 500),
			"failed without time":  d.rangeQuery(table, query, outbox.Failed, true, "", 500),
			"failed with time":     d.rangeQuery(table, query, outbox.Failed, false, "", 500),
			"head of a topic":      d.topicQuery(table, only, "id", false),
			"all of a topic":       d.topicQuery(table, only, "id", true),
			"closed topics":        d.topicsQuery(table, time.Minute, false),
			"all open topics":      d.topicsQuery(table, time.Minute, true),
			"next due":             d.nextDueQuery(table, outbox.Pending),
			"unrecorded":           d.unrecordedQuery(table, 100_000, 500),
			"mark":                 "UPDATE " + table.From() + table.ByID() + " SET status=1 WHERE " + table.These(refs) + " AND status IN (0,2)",
			"claim":                d.claimQuery(table, refs, claimDue),
		} {
			plan := d.Plan(t, statement)
			assert.NotContains(t, accessTypes(t, plan), "ALL", "%s: %s", name, plan)
			assert.NotContains(t, accessTypes(t, plan), "index", "%s: %s", name, plan)
			want := "idx_status_retry"
			if name == "mark" || name == "claim" {
				want = "PRIMARY"
			}
			assert.Contains(t, plan, `"key": "`+want+`"`, name)
			// A range is read in the order of the index: no sort.
			if strings.HasSuffix(name, "time") {
				assert.NotContains(t, plan, `"using_filesort": true`, name)
				assert.NotContains(t, plan, `"filesort": {`, name)
			}
		}
		start := time.Now()
		require.Len(t, d.candidates(t, query), 500)
		assert.Less(t, time.Since(start), 2*time.Second)
	})
}

// accessTypes collects how the plan reads the tables that exist; what it makes for itself may be read as a whole.
func accessTypes(t *testing.T, plan string) []string {
	t.Helper()
	var tree any
	require.NoError(t, json.Unmarshal([]byte(plan), &tree))
	var types []string
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			name, _ := node["table_name"].(string)
			if kind, ok := node["access_type"].(string); ok && (name == "local_message" || name == "`local_message`") {
				types = append(types, kind)
			}
			for _, child := range node {
				walk(child)
			}
		case []any:
			for _, child := range node {
				walk(child)
			}
		}
	}
	walk(tree)
	require.NotEmpty(t, types, plan)
	return types
}

func TestWithoutTheIndexItWorksAllTheSame(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Exec(t, "ALTER TABLE "+d.Name()+" RENAME INDEX idx_status_retry TO another_name")
		a := d.Insert(t, "a", 0, "NULL")
		assert.Len(t, d.candidates(t, Query{}), 1, "found again after the index was renamed")
		assert.Equal(t, "another_name", d.Tables()[0].due)
		d.Exec(t, "ALTER TABLE "+d.Name()+" DROP INDEX another_name")
		assert.Equal(t, []string{"a"}, msgIDs(d.candidates(t, Query{})))
		assert.Empty(t, d.Tables()[0].due)
		d.Exec(t, "ALTER TABLE "+d.Name()+" MODIFY id BIGINT, DROP PRIMARY KEY, ADD UNIQUE KEY other (id)")
		changed, err := d.MarkSent(t.Context(), []outbox.Ref{a})
		require.NoError(t, err)
		assert.EqualValues(t, 1, changed)
		assert.Equal(t, "other", d.Tables()[0].primary)
	})
}

func TestNextDueIsTheNearestFuture(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		_, ok, err := d.NextDue(t.Context())
		require.NoError(t, err)
		assert.False(t, ok)
		d.Insert(t, "overdue", 0, "NOW()-INTERVAL 1 DAY")
		d.Insert(t, "no time", 0, "NULL")
		d.Insert(t, "sent", 1, "NOW()+INTERVAL 1 SECOND")
		_, ok, err = d.NextDue(t.Context())
		require.NoError(t, err)
		assert.False(t, ok, "what is due already wakes nobody")
		d.Insert(t, "tomorrow", 0, "NOW()+INTERVAL 1 DAY")
		d.Insert(t, "soon", 2, "NOW()+INTERVAL 100 SECOND")
		due, ok, err := d.NextDue(t.Context())
		require.NoError(t, err)
		assert.True(t, ok)
		assert.InDelta(t, 99, time.Until(due).Seconds(), 2)
	})
}
