//go:build !unit

package canal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/rig"
)

func TestCommittedRowComesWithEverything(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.exec("ALTER TABLE local_message ADD msg_key VARCHAR(64), ADD headers JSON, ADD trace_parent VARCHAR(64)")
		b.stream()
		before := time.Now().Add(-2 * time.Second)
		b.exec(`INSERT INTO local_message (id, msg_id, topic, msg_content, status, retry_count, next_retry_time, create_time,
			update_time, msg_key, headers, trace_parent) VALUES
			(7, 'm1', 'orders', '{"a":"é中"}', 0, 3, '2031-01-02 03:04:05', '2026-05-06 07:08:09', NOW(), 'k1', '{"h": "v"}', '00-ab-cd-01')`)
		b.insert("m2")
		tx := b.next()
		for tx.Len() == 0 {
			tx = b.next()
		}
		require.Equal(t, 1, tx.Len())
		require.False(t, tx.CommittedAt.Before(before.Truncate(time.Second)), "committed at %s", tx.CommittedAt)
		require.False(t, tx.CommittedAt.After(time.Now().Add(time.Second)))
		for row, err := range tx.Rows() {
			require.NoError(t, err)
			require.Equal(t, outbox.Row{
				Table: outbox.Table{Database: b.database, Name: "local_message"}, ID: 7, MsgID: "m1", Topic: "orders",
				Content: []byte(`{"a":"é中"}`), Key: []byte("k1"), Headers: []byte(`{"h": "v"}`), TraceParent: "00-ab-cd-01",
				Status: outbox.Pending, RetryCount: 3, NextRetry: "2031-01-02 03:04:05", Created: "2026-05-06 07:08:09",
			}, row)
		}
		for _, err := range tx.Rows() {
			require.Error(t, err, "the rows are there once")
		}
		tx = b.next()
		for row, err := range tx.Rows() {
			require.NoError(t, err)
			require.Equal(t, "m2", row.MsgID)
			require.Nil(t, row.Key)
			require.Nil(t, row.Headers)
			require.Empty(t, row.NextRetry)
		}
	})
}

func TestS01CompressedTransactionPayloads(t *testing.T) {
	t.Parallel()
	b := newBench(t, rig.MySQL(t))
	b.stream()
	statements := []string{"SET SESSION binlog_transaction_compression = ON"}
	want := []string{}
	for i := range 50 {
		id := fmt.Sprintf("c%d", i)
		statements = append(statements, insertSQL(id))
		want = append(want, id)
	}
	statements = append(statements, "BEGIN")
	for i := range 5 {
		id := fmt.Sprintf("multi%d", i)
		statements = append(statements, insertSQL(id))
		want = append(want, id)
	}
	statements = append(statements, "SAVEPOINT s", insertSQL("undone"), "ROLLBACK TO s", "COMMIT")
	b.session(statements...)
	g := b.read()
	require.Equal(t, want, g.ids())
	require.Equal(t, 51, g.txns)
	requireBoundary(b, b.cursor.Position())
}

func TestS03CompressedRows(t *testing.T) {
	t.Parallel()
	b := newBench(t, rig.MariaDB(t, rig.Args("--log-bin-compress=ON", "--log-bin-compress-min-len=10")))
	b.stream()
	want := map[string]int{"r9": 9, "r252": 252, "r253": 253, "r600": 600, "r65000": 65000}
	for id, size := range want {
		b.exec(fmt.Sprintf("INSERT INTO local_message (msg_id, topic, msg_content, status, create_time, update_time)"+
			" VALUES ('%s', 't', REPEAT('x', %d), 0, NOW(), NOW())", id, size))
	}
	b.exec("CREATE TABLE other (a INT) COMMENT '" + strings.Repeat("c", 300) + "'")
	g := b.read()
	require.Len(t, g.rows, len(want))
	for i := range g.rows {
		require.Equal(t, strings.Repeat("x", want[g.rows[i].MsgID]), string(g.rows[i].Content))
	}
	require.Empty(t, g.missed)
}

func TestS04StatementFormatIsMissedAloud(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		b.session("SET SESSION binlog_format = 'STATEMENT'", insertSQL("s1"), "UPDATE local_message SET topic = 'x'")
		g := b.read()
		require.Empty(t, g.rows)
		require.Equal(t, 2, g.missed["statement"])
		require.Positive(t, g.kicks)
	})
}

func TestS05PartialImages(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		insert := "INSERT INTO local_message (msg_id, topic, msg_content) VALUES ('%s', 't', 'body')"
		for _, image := range []string{"MINIMAL", "NOBLOB"} {
			b.session("SET SESSION sql_mode = ''", "SET SESSION binlog_row_image = "+image, fmt.Sprintf(insert, image))
		}
		g := b.read()
		require.Equal(t, []string{"MINIMAL", "NOBLOB"}, g.ids(), "missed: %v", g.missed)
		for i := range g.rows {
			require.Equal(t, "t", g.rows[i].Topic)
			require.Equal(t, "body", string(g.rows[i].Content))
			require.Equal(t, outbox.Pending, g.rows[i].Status)
		}
	})
}

func TestPartialImageOfAnOwnUpdate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		b.session("SET SESSION binlog_row_image = MINIMAL", "BEGIN", insertSQL("u1"), insertSQL("u2"), insertSQL("u3"),
			"UPDATE local_message SET topic = 'changed' WHERE msg_id = 'u1'",
			"UPDATE local_message SET status = 1 WHERE msg_id = 'u2'",
			"DELETE FROM local_message WHERE msg_id = 'u3'", "COMMIT")
		g := b.read()
		require.Equal(t, []string{"u1"}, g.ids())
		require.Equal(t, "changed", g.rows[0].Topic)
		require.JSONEq(t, `{"id":"u1"}`, string(g.rows[0].Content))
	})
}

func TestS08XATransactionsAreLeftToTheSweeper(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		xid := "'" + b.database + "-1'"
		b.session("XA START "+xid, insertSQL("xa1"), "XA END "+xid, "XA PREPARE "+xid, "XA ROLLBACK "+xid, insertSQL("n1"))
		g := b.read()
		require.Equal(t, []string{"n1"}, g.ids())
		require.Zero(t, g.kicks, "a rollback leaves nothing to sweep")

		b.session("XA START "+xid, insertSQL("xa2"), insertSQL("xa2b"), "XA END "+xid, "XA PREPARE "+xid, "XA COMMIT "+xid)
		g = b.read()
		require.Empty(t, g.rows)
		require.Equal(t, 1, g.kicks)
		require.Equal(t, map[string]int{"xa": 1}, g.missed)
		require.Equal(t, 2, g.xaRows)

		b.exec("CREATE TABLE other (a INT) ENGINE = InnoDB")
		b.session("XA START "+xid, "INSERT INTO other VALUES (1)", "XA END "+xid, "XA PREPARE "+xid, "XA COMMIT "+xid)
		require.Zero(t, b.read().kicks, "other tables' XA transactions are none of ours")

		b.session("XA START "+xid, insertSQL("xa3"), "XA END "+xid, "XA COMMIT "+xid+" ONE PHASE")
		g = b.read()
		require.True(t, g.kicks == 1 || len(g.rows) == 1, "MySQL logs it as XA, MariaDB as an ordinary transaction")
		require.Equal(t, g.kicks, g.xaRows)

		b.session("XA START "+xid, insertSQL("xa4"), "XA END "+xid, "XA PREPARE "+xid)
		b.read()
		again := b.open()
		require.NoError(t, b.reader.Close())
		b.reader = again
		b.streamFrom(b.cursor.Position())
		b.session("XA COMMIT " + xid)
		g = b.read()
		require.Equal(t, map[string]int{"xa": 1}, g.missed)
		require.Equal(t, assemble.XARowsUnknown, g.xaRows, "another reader had seen it prepared")
		b.exec("DELETE FROM local_message")
	})
}

func TestS11Savepoints(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.exec("CREATE TABLE myisam (a INT) ENGINE = MyISAM")
		b.stream()
		want := []string{}
		for i := range 50 {
			one, two, three := fmt.Sprintf("sp1-%d", i), fmt.Sprintf("sp2-%d", i), fmt.Sprintf("sp3-%d", i)
			b.session("BEGIN", insertSQL(one), "SAVEPOINT `We ird`", insertSQL(two), "ROLLBACK TO `we IRD`", insertSQL(three), "COMMIT")
			want = append(want, one, three)
		}
		require.Equal(t, want, b.read().ids())
		requireBoundary(b, b.cursor.Position())

		b.session("BEGIN", insertSQL("a"), "ROLLBACK", "BEGIN", insertSQL("b"), "SAVEPOINT s1", insertSQL("c"), "SAVEPOINT s2",
			insertSQL("d"), "RELEASE SAVEPOINT s2", "ROLLBACK TO s1", insertSQL("e"), "ROLLBACK TO s1", "COMMIT")
		require.Equal(t, []string{"b"}, b.read().ids())
	})
}

// On MariaDB what was rolled back stays in the binlog in these cases.
func TestRollbackLeavesItsRowsInTheBinlog(t *testing.T) {
	t.Parallel()
	b := newBench(t, rig.MariaDB(t))
	b.exec("CREATE TABLE myisam (a INT) ENGINE = MyISAM")
	b.stream()
	b.session("BEGIN", insertSQL("f"), "SAVEPOINT s1", insertSQL("g"), "CREATE TEMPORARY TABLE tt (i INT)", "ROLLBACK")
	b.session("BEGIN", "SAVEPOINT s1", insertSQL("h"), "INSERT INTO myisam VALUES (1)", "ROLLBACK TO s1", insertSQL("i"), "COMMIT")
	require.Equal(t, []string{"i"}, b.read().ids())
}

func TestS14Upserts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.insert("dup")
		b.exec("UPDATE local_message SET status = 1")
		b.stream()
		columns := "local_message (msg_id, topic, msg_content, status, create_time, update_time) VALUES "
		b.exec("INSERT INTO " + columns + "('dup', 't2', 'x', 0, NOW(), NOW()) ON DUPLICATE KEY UPDATE topic = 't2'")
		g := b.read()
		require.Empty(t, g.rows)
		require.Zero(t, g.kicks, "it was sent and stays so")

		b.exec("REPLACE INTO " + columns + "('dup', 't3', 'other', 0, NOW(), NOW())")
		g = b.read()
		require.Positive(t, g.kicks+len(g.rows), "it is pending again")

		b.exec("INSERT IGNORE INTO " + columns + "('dup', 't4', 'x', 0, NOW(), NOW())")
		g = b.read()
		require.Empty(t, g.rows)
		require.Zero(t, g.kicks)

		b.exec("REPLACE INTO " + columns + "('dup', 't5', 'pending before and after, with a new id', 0, NOW(), NOW())")
		g = b.read()
		require.Positive(t, g.kicks+len(g.rows))

		b.exec("INSERT INTO " + columns + "('new', 't2', 'x', 0, NOW(), NOW()) ON DUPLICATE KEY UPDATE topic = 't9'")
		require.Equal(t, []string{"new"}, b.read().ids())
	})
}

func TestMarksAreNotKicksAndRevivedRowsAre(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.insert("a", "b")
		b.stream()
		for _, image := range []string{"FULL", "MINIMAL"} {
			b.session("SET SESSION binlog_row_image = "+image,
				"UPDATE local_message SET next_retry_time = NOW()",
				"UPDATE local_message SET status = 2, retry_count = COALESCE(retry_count, 0) + 1, next_retry_time = NOW() + INTERVAL 1 MINUTE",
				"UPDATE local_message SET next_retry_time = NOW()", "UPDATE local_message SET status = 1",
				"DELETE FROM local_message WHERE msg_id = 'none'")
			require.Zero(t, b.read().kicks)
			b.session("SET SESSION binlog_row_image = "+image, "UPDATE local_message SET status = 0")
			require.Equal(t, 1, b.read().kicks)
		}
	})
}

func TestS15MultiRowStatements(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		values := make([]string, 500)
		for i := range values {
			values[i] = fmt.Sprintf("('v%d', 't', 'x', 0, NOW(), NOW())", i)
		}
		columns := "local_message (msg_id, topic, msg_content, status, create_time, update_time) "
		b.exec("INSERT INTO "+columns+"VALUES "+strings.Join(values, ","),
			"INSERT INTO "+columns+"SELECT CONCAT(msg_id, '-', n), topic, msg_content, 0, NOW(), NOW() FROM local_message JOIN (SELECT 1 n UNION SELECT 2) two ORDER BY n, id")
		g := b.read()
		require.Len(t, g.rows, 1500)
		require.Equal(t, 2, g.txns)
		require.Equal(t, "v0", g.rows[0].MsgID)
		require.Equal(t, "v499", g.rows[499].MsgID)
		require.Equal(t, "v499-2", g.rows[1499].MsgID)
	})
}

func TestNetEffectOfATransaction(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		b.session("BEGIN", insertSQL("n1"), insertSQL("n2"), insertSQL("n3"), insertSQL("n4"),
			"UPDATE local_message SET msg_content = 'new' WHERE msg_id = 'n1'",
			"DELETE FROM local_message WHERE msg_id = 'n2'", insertSQL("n2"),
			"UPDATE local_message SET status = 3 WHERE msg_id = 'n3'",
			"UPDATE local_message SET id = id + 1000000 WHERE msg_id = 'n4'",
			"UPDATE local_message SET topic = 'moved' WHERE msg_id = 'n4'", "COMMIT")
		g := b.read()
		require.Equal(t, []string{"n1", "n4", "n2"}, g.ids())
		require.Equal(t, "new", string(g.rows[0].Content))
		require.Equal(t, "moved", g.rows[1].Topic)
		require.Greater(t, g.rows[1].ID, uint64(1000000))
		b.exec("INSERT INTO local_message (msg_id, topic, msg_content, status, create_time, update_time) VALUES ('sent', 't', 'x', 1, NOW(), NOW())")
		require.Empty(t, b.read().rows, "committed with another status")
	})
}

func TestS17LargePackets(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.exec("CREATE TABLE big (id INT, b LONGTEXT)")
		b.stream()
		b.exec("INSERT INTO big VALUES (1, REPEAT('x', 20000000))", "INSERT INTO big VALUES (2, REPEAT('y', 40000000))")
		b.insert("after")
		require.Equal(t, []string{"after"}, b.read().ids())
	}, rig.Args("--max-allowed-packet=64M"))
}
