//go:build !unit

package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// old makes rows as old as the archive wants them.
func (d *desk) old(t *testing.T) {
	t.Helper()
	d.Exec(t, "UPDATE "+d.Name()+" SET update_time=NOW()-INTERVAL 2 HOUR, create_time=NOW()-INTERVAL 3 HOUR")
}

func idsOf(refs ...outbox.Ref) []uint64 {
	ids := make([]uint64, len(refs))
	for i, ref := range refs {
		ids[i] = ref.ID
	}
	return ids
}

func (d *desk) move(t *testing.T, refs ...outbox.Ref) int {
	t.Helper()
	n, err := d.Move(t.Context(), d.Table, idsOf(refs...))
	require.NoError(t, err)
	return n
}

func TestMoveTakesOldConsumedRowsOnly(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.mayAlter(t)
		var refs []outbox.Ref
		for status := range 7 {
			refs = append(refs, d.Insert(t, fmt.Sprintf("s%d", status), status, "NULL"))
		}
		d.old(t)
		young := d.Insert(t, "young", 3, "NULL")
		again := d.Insert(t, "consumed late", 3, "NULL")
		d.Exec(t, "UPDATE "+d.Name()+" SET create_time=NOW()-INTERVAL 3 HOUR WHERE msg_id='consumed late'")
		assert.Equal(t, 1, d.move(t, append(refs, young, again)...))
		assert.Equal(t, []string{"s3"}, d.Texts(t, "SELECT msg_id FROM "+d.history()))
		assert.Equal(t, []string{"s0", "s1", "s2", "s4", "s5", "s6", "young", "consumed late"}, d.Texts(t, "SELECT msg_id FROM "+d.Name()+" ORDER BY id"))
		assert.Zero(t, d.move(t, refs...), "again")
		assert.Equal(t, []string{"1"}, d.Texts(t, "SELECT archived_at BETWEEN NOW()-INTERVAL 1 MINUTE AND NOW(6) FROM "+d.history()))
	})
}

func TestMoveNeverTakesOpenRows(t *testing.T) {
	t.Parallel()
	for _, status := range []outbox.Status{outbox.Pending, outbox.Failed, outbox.Dead, outbox.Discarded, outbox.Foreign} {
		cfg := Config{Statuses: []outbox.Status{outbox.Consumed, status}}
		assert.ErrorContains(t, cfg.validate(), "never archived", status)
	}
}

// What another session has locked is left for the next time, and an INSERT never waits for a batch.
func TestMoveSkipsLockedRowsAndLocksNoGap(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.mayAlter(t)
		var refs []outbox.Ref
		for i := range 10 {
			refs = append(refs, d.Insert(t, fmt.Sprint("m", i), 3, "NULL"))
		}
		d.old(t)
		require.NoError(t, d.Follow(t.Context(), d.Table))
		other, err := d.DB.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = other.ExecContext(t.Context(), "SELECT 1 FROM "+d.Name()+" WHERE id=? FOR UPDATE", refs[4].ID)
		require.NoError(t, err)
		assert.Equal(t, 9, d.move(t, refs...))
		require.NoError(t, other.Rollback())
		assert.Equal(t, []string{"m4"}, d.Texts(t, "SELECT msg_id FROM "+d.Name()))

		// The batch's own statements, held open: writers insert between and behind the rows.
		d.Exec(t, "UPDATE "+d.Name()+" SET id=1000")
		last := d.Insert(t, "last", 3, "NULL")
		d.old(t)
		conn, err := d.DB.Conn(t.Context())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		table := &d.rows.Tables()[0]
		for _, statement := range slices.Concat(
			[]string{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN", d.lockOldQuery(table, []outbox.Ref{{ID: 1000}, last})},
			d.moveStatements(table, archive.of(d.Table), []string{"id", "msg_id", "topic", "msg_content", "status", "create_time", "update_time"},
				fmt.Sprintf("1000,%d", last.ID))) {
			_, err := conn.ExecContext(t.Context(), statement)
			require.NoError(t, err, statement)
		}
		begun := time.Now()
		d.Exec(t, "INSERT INTO "+d.Name()+" (id,msg_id,topic,msg_content,status,create_time,update_time) VALUES (500,'before','t','',0,NOW(),NOW()),(1003,'behind','t','',0,NOW(),NOW())")
		d.Insert(t, "lb", 0, "NULL")
		d.Insert(t, "m4b", 3, "NULL")
		assert.Less(t, time.Since(begun), 10*time.Second, "an insert waited for the batch")
		_, err = conn.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
	})
}

func TestMoveFindsItsRowsByPrimaryKey(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.mayAlter(t)
		d.Fill(t, 3000, "orders", "NULL")
		require.NoError(t, d.Follow(t.Context(), d.Table))
		table := &d.rows.Tables()[0]
		refs := d.Refs(500)
		statements := append([]string{d.lockOldQuery(table, refs)},
			d.moveStatements(table, archive.of(d.Table), []string{"id", "msg_id", "topic", "msg_content", "status", "create_time", "update_time"}, table.IDs(refs))...)
		for _, statement := range statements {
			plan := d.Plan(t, statement)
			assert.Contains(t, plan, "PRIMARY", statement[:60])
			if _, from, ok := strings.Cut(plan, `"insert_from"`); ok {
				plan = from // MySQL calls the insert itself a scan
			}
			if _, rest, ok := strings.Cut(plan, "outbox_picked"); ok {
				plan = rest // the list of ids itself is read from one end to the other
			}
			assert.Contains(t, plan, `"access_type": "eq_ref"`, statement[:60])
		}
		for lane := range 2 {
			for _, from := range []store.Spot{{}, store.SpotAt(7, "2026-01-01 00:00:00")} {
				plan := d.Plan(t, d.lookQuery(table, lane, from, 100))
				assert.Contains(t, plan, "idx_status_retry", "lane %d", lane)
				assert.NotContains(t, plan, `"using_filesort": true`, "lane %d", lane)
				assert.NotContains(t, plan, `"filesort": {`, "lane %d", lane)
			}
		}
	})
}
