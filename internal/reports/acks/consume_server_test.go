//go:build !unit

package acks

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// sharedRules are rules by which two groups have to report the topic orders.
var sharedRules = Rules{Groups: map[string][]string{"orders": {"points", "logistics"}}}

// newAckDesk makes a desk with an ack table.
func newAckDesk(t *testing.T, srv *rig.Server) *desk {
	t.Helper()
	d := newDesk(t, srv)
	d.Exec(t, Schema(d.ackTable(), 0))
	return d
}

func (d *desk) consume(t testing.TB, rules Rules, group string, ids ...string) report.Counts {
	t.Helper()
	counts, err := d.Consume(t.Context(), rules, report.Report{Group: group, MsgIDs: ids})
	require.NoError(t, err)
	return counts
}

func (d *desk) statuses(t testing.TB) map[string]int {
	t.Helper()
	rows, err := d.DB.QueryContext(t.Context(), "SELECT msg_id,status FROM "+d.Name())
	require.NoError(t, err)
	defer closeRows(rows)
	found := map[string]int{}
	for rows.Next() {
		var id string
		var status int
		require.NoError(t, rows.Scan(&id, &status))
		found[id] = status
	}
	require.NoError(t, rows.Err())
	return found
}

func TestConsumeIsGuarded(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		for id, status := range map[string]int{"pending": 0, "sent": 1, "failed": 2, "consumed": 3, "dead": 4, "discarded": 5, "foreign": 9, "other": 1} {
			d.Insert(t, id, status, "NULL")
		}
		all := []string{"pending", "sent", "failed", "consumed", "dead", "discarded", "foreign", "nobody's", "SENT", "sent", "'; --"}
		assert.Equal(t, report.Counts{Consumed: 3, Already: 1, Ignored: 3, Unknown: 3}, d.consume(t, Rules{}, "points", all...))
		want := map[string]int{"pending": 3, "sent": 3, "failed": 3, "consumed": 3, "dead": 4, "discarded": 5, "foreign": 9, "other": 1}
		assert.Equal(t, want, d.statuses(t))
		assert.Zero(t, d.One(t, "SELECT COUNT(*) FROM "+d.Name()+" WHERE status=3 AND msg_id<>'consumed' AND update_time<NOW()-INTERVAL 30 SECOND"), "update_time is written")
		assert.Equal(t, report.Counts{Already: 4, Ignored: 3, Unknown: 3}, d.consume(t, Rules{}, "other", all...), "a report may come twice")
		assert.Equal(t, want, d.statuses(t))
	})
}

// A report that overtakes the mark counts, and the late mark, a late failure or a late deferral do not take it back.
func TestConsumeOvertakesTheMark(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		pending, failed := d.Insert(t, "a", 0, "NULL"), d.Insert(t, "b", 2, "NOW()")
		refs := []outbox.Ref{pending, failed}
		assert.Equal(t, report.Counts{Consumed: 2}, d.consume(t, Rules{}, "", "a", "b"))
		_, err := d.rows.MarkSent(t.Context(), refs)
		require.NoError(t, err)
		_, err = d.rows.MarkFailed(t.Context(), []store.Failure{{Ref: pending, MaxRetries: 5}, {Ref: failed, MaxRetries: 5}})
		require.NoError(t, err)
		require.NoError(t, d.rows.MarkDead(t.Context(), []store.Failure{{Ref: pending}}))
		require.NoError(t, d.rows.Defer(t.Context(), refs))
		claimed, err := d.rows.Claim(t.Context(), refs, time.Second)
		require.NoError(t, err)
		assert.Empty(t, claimed)
		assert.Equal(t, map[string]int{"a": 3, "b": 3}, d.statuses(t))
	})
}

// With semi-synchronous replication a message is in Kafka, and consumed, before other sessions can read its row: here its
// transaction is still open. The report waits for it.
func TestConsumeWaitsForARowThatCannotBeReadYet(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newAckDesk(t, srv)
		tx, err := d.DB.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "INSERT INTO "+d.Name()+" (msg_id,topic,msg_content,status,create_time,update_time) VALUES ('late','orders','{}',0,NOW(),NOW())")
		require.NoError(t, err)
		done := make(chan report.Counts, 1) // size 1: the test may have failed by then
		go func() {
			counts, err := d.Consume(t.Context(), Rules{}, report.Report{MsgIDs: []string{"late"}})
			assert.NoError(t, err)
			done <- counts
		}()
		require.Eventually(t, func() bool { return d.Runs(t, "SHARE MODE") }, 20*time.Second, 20*time.Millisecond, "the report waits for the row's lock")
		require.NoError(t, tx.Commit())
		assert.Equal(t, report.Counts{Consumed: 1}, <-done)
	})
}

func TestConsumeOfSeveralGroups(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newAckDesk(t, srv)
		d.Insert(t, "a", 1, "NULL")
		d.Insert(t, "b", 0, "NULL")
		d.InsertTopic(t, "c", "bills", 1, "NULL")
		d.Insert(t, "dead", 4, "NULL")
		assert.Equal(t, report.Counts{Waiting: 2, Consumed: 1, Ignored: 1}, d.consume(t, sharedRules, "points", "a", "b", "c", "dead"))
		assert.Equal(t, report.Counts{Already: 2}, d.consume(t, sharedRules, "points", "a", "b"), "a report may come twice")
		assert.Equal(t, map[string]int{"a": 1, "b": 0, "c": 3, "dead": 4}, d.statuses(t))
		assert.Equal(t, report.Counts{Stranger: 1}, d.consume(t, sharedRules, "audit", "a"))
		// The mark comes between the reports.
		_, err := d.rows.MarkSent(t.Context(), []outbox.Ref{{Table: d.Table, ID: 2, MsgID: "b"}})
		require.NoError(t, err)
		reported, err := d.Reported(t.Context(), []outbox.Ref{{Table: d.Table, ID: 1, MsgID: "a"}})
		require.NoError(t, err)
		assert.Equal(t, map[outbox.Ref][]string{{Table: d.Table, ID: 1, MsgID: "a"}: {"points"}}, reported)
		assert.Equal(t, report.Counts{Consumed: 2}, d.consume(t, sharedRules, "logistics", "b", "a"))
		assert.Equal(t, map[string]int{"a": 3, "b": 3, "c": 3, "dead": 4}, d.statuses(t))
		assert.Zero(t, d.One(t, "SELECT COUNT(*) FROM "+outbox.QuoteTable(d.ackTable())), "who has reported is forgotten once all have")
		assert.Equal(t, report.Counts{Already: 1}, d.consume(t, sharedRules, "points", "a"))
	})
}

// Two groups report the same messages at the same time, by the relay and by SQL, while the relay marks them: each ends
// consumed, none goes back, nothing is left over.
func TestConsumeAndMarksAtTheSameTime(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newAckDesk(t, srv)
		const n = 2000
		refs := d.Fill(t, n, "orders", "NULL")
		ids := make([]string, n)
		for i, ref := range refs {
			ids[i] = ref.MsgID
		}
		var all errgroup.Group
		run := func(size int, do func(ctx context.Context, some []int) error) {
			order := rand.Perm(n)
			all.Go(func() error {
				for part := range slices.Chunk(order, size) {
					if err := do(t.Context(), part); err != nil {
						return err
					}
				}
				return nil
			})
		}
		pick := func(some []int) (chosen []string) {
			for _, i := range some {
				chosen = append(chosen, ids[i])
			}
			return chosen
		}
		run(100, func(ctx context.Context, some []int) error {
			marked := make([]outbox.Ref, len(some))
			for i, k := range some {
				marked[i] = refs[k]
			}
			return untilFree(func() error {
				_, err := d.rows.MarkSent(ctx, byID(marked))
				return err
			})
		})
		_, second := open(t, d.config) // another relay that believes that it leads
		for _, s := range []*Acks{d.Acks, second} {
			run(150, func(ctx context.Context, some []int) error {
				return untilFree(func() error {
					_, err := s.Consume(ctx, sharedRules, report.Report{Group: "points", MsgIDs: pick(some)})
					return err
				})
			})
		}
		bySQL := report.SQL{Table: d.Table, Groups: sharedRules.Groups["orders"]}
		run(50, func(ctx context.Context, some []int) error {
			return inTransaction(ctx, d.DB, bySQL, "logistics", pick(some))
		})
		require.NoError(t, all.Wait())
		assert.EqualValues(t, n, d.One(t, "SELECT COUNT(*) FROM "+d.Name()+" WHERE status=3"))
		var next Cursor
		_, next, err := d.Settle(t.Context(), sharedRules, next)
		require.NoError(t, err)
		assert.Zero(t, next)
		assert.Zero(t, d.One(t, "SELECT COUNT(*) FROM "+outbox.QuoteTable(d.ackTable())))
	})
}

// untilFree tries again while rows are locked, as the relay does.
func untilFree(do func() error) error {
	for {
		if err := do(); !errors.Is(err, mysql.ErrBusy) {
			return err
		}
	}
}

// inTransaction reports as a consumer's handler does: inside its own transaction, again after a deadlock.
func inTransaction(ctx context.Context, db *sql.DB, s report.SQL, group string, ids []string) error {
	for try := 0; ; try++ {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = s.MarkConsumed(ctx, tx, group, ids...)
		if err == nil {
			err = tx.Commit()
		} else {
			_ = tx.Rollback()
		}
		if err == nil || try == 20 || !strings.Contains(err.Error(), "1213") && !strings.Contains(err.Error(), "1205") {
			return err
		}
	}
}

// One msg_id in two tables and topics: the report's topic tells which is meant.
func TestConsumeOfAMsgIDThatTwoTablesKnow(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		other := outbox.Table{Database: d.Table.Database, Name: "local_message_2"}
		d.Exec(t, outbox.Schema(other, outbox.AllColumns()))
		both := d.config
		both.Tables = []string{d.Table.Database + `./local_message.*/`}
		_, s := open(t, both)
		d.InsertTopic(t, "x", "orders", 1, "NULL")
		d.Exec(t, "INSERT INTO "+outbox.QuoteTable(other)+" (msg_id,topic,msg_content,status,create_time,update_time) VALUES ('x','bills','{}',1,NOW(),NOW()),('y','bills','{}',1,NOW(),NOW())")
		take := func(topic string, ids ...string) report.Counts {
			counts, err := s.Consume(t.Context(), Rules{TopicOf: func(name string) string { return "prod." + name }}, report.Report{Topic: topic, MsgIDs: ids})
			require.NoError(t, err)
			return counts
		}
		assert.Equal(t, report.Counts{Ambiguous: 1, Consumed: 1}, take("", "x", "y"))
		assert.Equal(t, map[string]int{"x": 1}, d.statuses(t))
		assert.Equal(t, report.Counts{Unknown: 1}, take("bills", "x"), "the topic is Kafka's, not the row's")
		assert.Equal(t, report.Counts{Consumed: 1}, take("prod.bills", "x"))
		assert.Equal(t, map[string]int{"x": 1}, d.statuses(t))
		assert.EqualValues(t, 2, d.One(t, "SELECT COUNT(*) FROM "+outbox.QuoteTable(other)+" WHERE status=3"))
	})
}

func TestConsumeUsesTheConfiguredNumbersAndNames(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		columns := outbox.DefaultColumns()
		columns.Status, columns.MsgID, columns.UpdateTime = "state", "uuid", "changed"
		create := strings.Replace(outbox.Schema(outbox.Table{Name: "X"}, outbox.SchemaOptions{Columns: columns}), "`X`", "%s", 1)
		d := newDeskWith(t, srv, create, func(c *store.Config) { c.Columns, c.Statuses = columns, outbox.Statuses{10, 11, 12, 13, 14, 15} })
		d.Exec(t, "INSERT INTO "+d.Name()+" (uuid,topic,msg_content,state,create_time,changed) VALUES ('a','orders','{}',10,NOW(),NOW()),('b','orders','{}',3,NOW(),NOW()),('c','orders','{}',11,NOW(),NOW())")
		assert.Equal(t, report.Counts{Consumed: 1, Ignored: 1}, d.consume(t, Rules{}, "", "a", "b"))
		s := report.SQL{Table: d.Table, Columns: columns, Statuses: outbox.Statuses{10, 11, 12, 13, 14, 15}}
		n, err := s.MarkConsumed(t.Context(), d.DB, "", "a", "b", "c")
		require.NoError(t, err)
		assert.EqualValues(t, 1, n)
		assert.EqualValues(t, 2, d.One(t, "SELECT COUNT(*) FROM "+d.Name()+" WHERE state=13"))
	})
}

// Reports find their rows by the unique index, whatever the column's character set and collation, and however stale the
// statistics: never by reading, or locking, the table.
func TestConsumeReadsByIndex(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		for _, charset := range []string{"utf8mb4", "latin1", "gbk", "utf8mb4 COLLATE utf8mb4_bin"} {
			create := strings.Replace(outbox.Schema(outbox.Table{Name: "X"}, outbox.AllColumns()), "`X`", "%s", 1)
			d := newDeskWith(t, srv, create+" DEFAULT CHARSET="+charset)
			d.Exec(t, Schema(d.ackTable(), 0))
			id := "x"
			if charset == "gbk" {
				id = "中-1"
			}
			d.Insert(t, id, 1, "NULL")
			table := d.rows.Tables()[0]
			plan := d.Plan(t, "SELECT id FROM "+table.From()+table.ByMsgID()+" WHERE msg_id IN ("+table.QuoteMsgID(id)+","+table.QuoteMsgID("é'日")+")")
			assert.Contains(t, plan, "uk_msg_id", charset)
			assert.NotContains(t, plan, `"ALL"`, charset)
			assert.Equal(t, report.Counts{Waiting: 1, Unknown: 1}, d.consume(t, sharedRules, "points", id, "é'日"), charset)
			assert.Equal(t, report.Counts{Consumed: 1, Unknown: 1}, d.consume(t, sharedRules, "logistics", id, "é'日"), charset)
		}
	})
}
