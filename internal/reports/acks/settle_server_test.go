//go:build !unit

package acks

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// What consumers write into the ack table with SQL of their own is completed by the relay's pass.
func TestSettleAcks(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newAckDesk(t, srv)
		for i, status := range []int{0, 1, 2, 3, 4} {
			d.Insert(t, fmt.Sprint("m", i), status, "NULL")
		}
		d.InsertTopic(t, "bill", "bills", 1, "NULL")
		acks := outbox.QuoteTable(d.ackTable())
		both := func(id string) string {
			return fmt.Sprintf("('%s','points',NOW()),('%s','logistics',NOW())", id, id)
		}
		d.Exec(t, "INSERT INTO "+acks+" VALUES "+both("m0")+","+both("m1")+",('m2','points',NOW()),"+both("m3")+","+both("m4")+
			",('bill','anybody',NOW()),('orphan','points',NOW()-INTERVAL 2 DAY),('late','points',NOW()),('late','logistics',NOW()-INTERVAL 2 DAY)")
		counts, next, err := d.Settle(t.Context(), sharedRules, Cursor{})
		require.NoError(t, err)
		assert.Zero(t, next)
		assert.Equal(t, report.Counts{Consumed: 3}, counts)
		assert.Equal(t, map[string]int{"m0": 3, "m1": 3, "m2": 2, "m3": 3, "m4": 4, "bill": 3}, d.statuses(t))
		left, err := texts(t, d.DB, "SELECT DISTINCT msg_id FROM "+acks+" ORDER BY 1")
		require.NoError(t, err)
		assert.Equal(t, []string{"late", "m2", "m4"}, left)
	})
}

func TestSettleAcksPageByPage(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newAckDesk(t, srv)
		const n = settleLimit // two reports each
		d.Fill(t, n, "orders", "NULL")
		acks := outbox.QuoteTable(d.ackTable())
		for _, group := range sharedRules.Groups["orders"] {
			d.Exec(t, "INSERT INTO "+acks+" SELECT msg_id,'"+group+"',NOW() FROM "+d.Name())
		}
		var total report.Counts
		var at Cursor
		pages := 0
		for ; pages == 0 || at != (Cursor{}); pages++ {
			counts, next, err := d.Settle(t.Context(), sharedRules, at)
			require.NoError(t, err)
			total.Add(counts)
			at = next
		}
		assert.Equal(t, report.Counts{Consumed: n}, total)
		assert.Equal(t, 3, pages)
		assert.Zero(t, d.One(t, "SELECT COUNT(*) FROM "+acks))
	})
}

// A table of reports that is missing does not keep the others from being looked through.
func TestSettleAcksPastAMissingTable(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		other := outbox.Table{Database: d.Table.Database, Name: "local_message_2"}
		d.Exec(t, outbox.Schema(other, outbox.AllColumns()))
		d.Exec(t, Schema(outbox.Table{Database: other.Database, Name: "local_message_2_ack"}, 0))
		cfg := d.config
		cfg.Tables = []string{d.Table.Database + ".local_message", d.Table.Database + ".local_message_2"}
		_, s := open(t, cfg)
		d.Exec(t, "INSERT INTO "+outbox.QuoteTable(other)+" (msg_id,topic,msg_content,status,create_time,update_time) VALUES ('a','orders','{}',1,NOW(),NOW())")
		d.Exec(t, "INSERT INTO "+other.Database+".local_message_2_ack VALUES ('a','points',NOW()),('a','logistics',NOW())")
		_, next, err := s.Settle(t.Context(), sharedRules, Cursor{})
		require.ErrorContains(t, err, "outbox-relay init")
		counts, next, err := s.Settle(t.Context(), sharedRules, next)
		require.NoError(t, err)
		assert.Zero(t, next)
		assert.Equal(t, report.Counts{Consumed: 1}, counts)
	})
}

func TestConsumeWithoutAnAckTableSaysWhatToDo(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Insert(t, "a", 1, "NULL")
		_, err := d.Consume(t.Context(), sharedRules, report.Report{Group: "points", MsgIDs: []string{"a"}})
		require.ErrorContains(t, err, "outbox-relay init")
		assert.Equal(t, map[string]int{"a": 1}, d.statuses(t))
	})
}

func TestInitAndInspectOfTheAckTable(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		cfg := d.config
		report, err := store.Inspect(t.Context(), cfg)
		require.NoError(t, err)
		for _, f := range report.Findings {
			assert.NotContains(t, f.Check, "reports table", "nobody needs it")
		}
		cfg.Companions = []store.Companion{Config{Needed: true}}
		report, err = store.Inspect(t.Context(), cfg)
		require.NoError(t, err)
		require.Equal(t, 1, failures(report))
		admin := cfg
		admin.User, admin.Password, admin.MarkUser = srv.User, srv.Password, cfg.User
		done, err := store.Init(t.Context(), admin, false)
		require.NoError(t, err)
		assert.Contains(t, strings.Join(done, "\n"), "CREATE TABLE IF NOT EXISTS "+outbox.QuoteTable(d.ackTable()))
		assert.Contains(t, strings.Join(done, "\n"), "GRANT SELECT, INSERT, DELETE ON "+outbox.QuoteTable(d.ackTable()))
		report, err = store.Inspect(t.Context(), cfg)
		require.NoError(t, err)
		assert.Zero(t, failures(report), "%+v", report.Findings)
		done, err = store.Init(t.Context(), admin, false)
		require.NoError(t, err)
		assert.NotContains(t, strings.Join(done, "\n"), "CREATE TABLE")
	})
}

func texts(t *testing.T, db *sql.DB, query string) ([]string, error) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		return nil, err
	}
	defer func() { assert.NoError(t, conn.Close()) }()
	return mysql.Texts(t.Context(), conn, query)
}

func failures(r diagnose.Report) (n int) {
	for _, f := range r.Findings {
		if f.Level == diagnose.Failure {
			n++
		}
	}
	return n
}
