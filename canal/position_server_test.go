//go:build !unit

package canal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/rig"
)

// big inserts n rows in one transaction.
func (b *bench) big(prefix string, n int) {
	b.t.Helper()
	b.exec("CREATE TABLE IF NOT EXISTS digits (d INT)", "DELETE FROM digits",
		"INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
	b.exec(fmt.Sprintf("INSERT INTO local_message (msg_id, topic, msg_content, status, create_time, update_time)"+
		" SELECT CONCAT('%s', n), 't', CONCAT('{\"n\":', n, '}'), 0, NOW(), NOW() FROM"+
		" (SELECT a.d + 10*b.d + 100*c.d + 1000*d.d + 10000*e.d n FROM digits a, digits b, digits c, digits d, digits e) x WHERE n < %d ORDER BY n", prefix, n))
}

// purge removes the binlog files before one. MariaDB refuses silently while its last checkpoint is in an older file.
func (b *bench) purge(file string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		b.exec("PURGE BINARY LOGS TO '" + file + "'")
		rows, err := b.db.QueryContext(b.t.Context(), "SHOW BINARY LOGS")
		require.NoError(b.t, err)
		defer rows.Close() //nolint:errcheck // only read
		require.True(b.t, rows.Next())
		columns, err := rows.Columns()
		require.NoError(b.t, err)
		first := make([]any, len(columns))
		for i := range first {
			first[i] = new(string)
		}
		require.NoError(b.t, rows.Scan(first...))
		require.NoError(b.t, rows.Err())
		name, ok := first[0].(*string)
		return ok && *name == file
	}, 20*time.Second, 50*time.Millisecond)
}

func (b *bench) resolve(saved position.Position) canal.Start {
	b.t.Helper()
	start, err := b.reader.Resolve(b.t.Context(), saved, true, canal.StartNow)
	require.NoError(b.t, err)
	return start
}

// again makes a new reader, as a restarted relay does, and resolves a position.
func (b *bench) again(saved position.Position) canal.Start {
	b.t.Helper()
	require.NoError(b.t, b.reader.Close())
	b.reader = b.open()
	return b.resolve(saved)
}

func TestS43S54EndsAreBoundaries(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		b.insert("before")
		before := b.next()
		for before.Len() == 0 {
			before = b.next()
		}
		saved := b.cursor.Position()
		b.big("big", 20000)
		// A restart from the end before the transaction reads it whole, and from the end behind it not at all.
		for range 2 {
			start := b.again(saved)
			require.True(t, start.Usable, start.Detail)
			require.Equal(t, words.RecoveryResumed, start.Recovery)
			b.streamFrom(start.Position)
			tx := b.next()
			for tx.Len() == 0 {
				requireBoundary(b, b.cursor.Position())
				tx = b.next()
			}
			require.Equal(t, 20000, tx.Len())
			requireBoundary(b, b.cursor.Position())
		}
		start := b.again(b.cursor.Position())
		b.streamFrom(start.Position)
		require.Empty(t, b.read().rows)
	})
}

func TestS48S57ProgressWhileTheOutboxIsIdle(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.exec("CREATE TABLE other (a INT)")
		b.stream()
		for range 3 {
			b.exec("INSERT INTO other VALUES (1)", "FLUSH BINARY LOGS")
		}
		end, err := b.reader.End(t.Context())
		require.NoError(t, err)
		began, empties := time.Now(), 0
		for {
			at := b.cursor.Position()
			if c, err := position.Compare(at.File, at.Pos, end.File, end.Pos); err == nil && c >= 0 {
				break
			}
			require.Zero(t, b.next().Len())
			empties++
		}
		require.Less(t, time.Since(began), 5*time.Second)
		require.Less(t, empties, 30, "they are put together")
		at := b.cursor.Position()
		require.Equal(t, end.File, at.File)
		requireBoundary(b, at)
		b.purge(at.File)
		start := b.again(at)
		require.True(t, start.Usable, start.Detail)
		b.streamFrom(start.Position)
		b.insert("m1")
		require.Equal(t, []string{"m1"}, b.read().ids())
		c, err := position.Compare(b.cursor.Position().File, b.cursor.Position().Pos, at.File, at.Pos)
		require.NoError(t, err)
		require.Positive(t, c)
		if server.Flavor == rig.FlavorMySQL {
			end, err := b.reader.End(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, end.GTID)
		}
	}, rig.Own())
}

// Progress is told soon after a server falls idle, not with its next heartbeat: sweeps wait for it.
func TestProgressDoesNotWaitForAHeartbeat(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.cfg.HeartbeatPeriod, b.cfg.ReadTimeout = 20*time.Second, time.Minute
		b.exec("CREATE TABLE other (a INT)")
		b.stream()
		b.exec("INSERT INTO other VALUES (1)")
		require.Zero(t, b.next().Len())
		began := time.Now()
		b.exec("INSERT INTO other VALUES (2)")
		require.Zero(t, b.next().Len())
		require.Less(t, time.Since(began), 10*time.Second)
	}, rig.Own())
}

func TestPurgedPositionIsToldOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.insert("old")
		b.stream()
		old := b.cursor.Position()
		b.insert("m1")
		b.exec("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
		end, err := b.reader.End(t.Context())
		require.NoError(t, err)
		b.purge(end.File)
		start := b.again(old)
		require.False(t, start.Usable, start.Detail)
		require.Equal(t, words.RecoveryPurged, start.Recovery, start.Detail)
		require.Equal(t, end.File, start.Position.File)

		// The same while it streams: Next tells it instead of trying for ever.
		b.streamFrom(old)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err = b.reader.Next(ctx)
		var lost *canal.PositionLost
		require.ErrorAs(t, err, &lost)
		require.Equal(t, words.RecoveryPurged, lost.Reason)

		b.streamFrom(start.Position)
		b.insert("m2")
		require.Equal(t, []string{"m2"}, b.read().ids())
	}, rig.Own())
}

func TestS50NewHistoryUnderTheOldNames(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.insert("a", "b", "c")
		b.stream()
		saved := b.cursor.Position()
		reset := "RESET MASTER"
		if server.Flavor == rig.FlavorMySQL {
			reset = "RESET BINARY LOGS AND GTIDS"
		}
		b.exec(reset)
		start := b.again(saved)
		require.False(t, start.Usable)
		require.Equal(t, words.RecoveryInvalid, start.Recovery, start.Detail)
		// The new history grows past the old place.
		b.big("new", 200)
		for i := range 40 {
			b.insert(fmt.Sprintf("n%d", i))
		}
		start = b.again(saved)
		require.False(t, start.Usable, start.Detail)
		require.Equal(t, words.RecoveryInvalid, start.Recovery, start.Detail)
		// Without GTIDs in the position as well.
		saved.GTID = ""
		saved.Pos--
		start = b.again(saved)
		require.False(t, start.Usable, start.Detail)
	}, rig.Own())
}

func TestPositionInsideATransactionIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		end, err := b.reader.End(t.Context())
		require.NoError(t, err)
		b.insert("m1")
		rows, err := b.db.QueryContext(t.Context(), fmt.Sprintf("SHOW BINLOG EVENTS IN '%s' FROM %d LIMIT 6", end.File, end.Pos))
		require.NoError(t, err)
		defer rows.Close() //nolint:errcheck // only read
		inside := end
		inside.GTID = ""
		for rows.Next() {
			var file, kind, info string
			var pos, id, to uint64
			require.NoError(t, rows.Scan(&file, &pos, &kind, &id, &to, &info))
			if kind == "Table_map" {
				inside.Pos = pos
			}
		}
		require.NoError(t, rows.Err())
		require.NotEqual(t, end.Pos, inside.Pos)
		b.streamFrom(inside)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var lost *canal.PositionLost
		for err = nil; err == nil; {
			_, err = b.reader.Next(ctx)
		}
		require.ErrorAs(t, err, &lost)
		require.Equal(t, words.RecoveryInvalid, lost.Reason)
		if server.Flavor == rig.FlavorMySQL {
			require.False(t, b.resolve(inside).Usable)
		}
	})
}

func TestEarliestReadsEverything(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.insert("a")
		b.exec("FLUSH BINARY LOGS")
		b.insert("b")
		b.reader = b.open()
		start, err := b.reader.Resolve(t.Context(), position.Position{}, false, canal.StartEarliest)
		require.NoError(t, err)
		require.True(t, start.Usable)
		b.streamFrom(start.Position)
		require.Equal(t, []string{"a", "b"}, b.read().ids())
		end, err := b.reader.End(t.Context())
		require.NoError(t, err)
		require.Eventually(t, func() bool { b.next(); return b.cursor.Position().GTID == end.GTID }, 10*time.Second, time.Millisecond,
			"the complete set is learnt on the way")
	}, rig.Own())
}

func TestS52AnotherServerByGTID(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		b.insert("a")
		require.Equal(t, []string{"a"}, b.read().ids())
		saved := b.cursor.Position()
		replica := server.Replica(t, rig.Args("--log-bin=aaa-bin"))
		b.insert("b")
		caughtUp(t, replica, b.database)
		b.cfg.Addr, b.cfg.User, b.cfg.Password = replica.Addr, replica.User, replica.Password
		start := b.again(saved)
		require.True(t, start.Usable, start.Detail)
		require.NotEqual(t, saved.Server, start.Position.Server)
		b.streamFrom(start.Position)
		tx := b.next()
		for tx.Len() == 0 {
			tx = b.next()
		}
		for row, err := range tx.Rows() {
			require.NoError(t, err)
			require.Equal(t, "b", row.MsgID)
		}
		require.Contains(t, b.cursor.Position().File, "aaa-bin")
		requireReplicaBoundary(t, replica, b.cursor.Position())

		// Without GTIDs the place can't be found.
		saved.GTID = ""
		start = b.resolve(saved)
		require.False(t, start.Usable)
		require.Equal(t, words.RecoveryOtherServer, start.Recovery)
	}, rig.Own())
}

func caughtUp(t *testing.T, replica *rig.Server, database string) {
	t.Helper()
	db := replica.DB(t)
	require.Eventually(t, func() bool {
		var n int
		err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM `"+database+"`.local_message WHERE msg_id = 'b'").Scan(&n)
		return err == nil && n == 1
	}, 30*time.Second, 50*time.Millisecond)
}

func requireReplicaBoundary(t *testing.T, replica *rig.Server, p position.Position) {
	t.Helper()
	b := &bench{t: t, db: replica.DB(t)}
	requireBoundary(b, p)
}

func TestLargeTransactionsAreSpilled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.cfg.BufferBytes = 64 << 10
		b.stream()
		b.exec("BEGIN")
		b.big("s", 5000)
		conn := []string{"BEGIN"}
		for i := range 400 {
			conn = append(conn, insertSQL(fmt.Sprintf("x%d", i)))
			if i == 300 {
				conn = append(conn, "SAVEPOINT sp")
			}
		}
		conn = append(conn, "ROLLBACK TO sp", insertSQL("last"), "UPDATE local_message SET topic = 'changed' WHERE msg_id IN ('x0', 'x299')",
			"DELETE FROM local_message WHERE msg_id IN ('x1', 'x298')", "COMMIT")
		b.session(conn...)
		g := b.read()
		require.Equal(t, 2, g.txns)
		require.Len(t, g.rows, 5000+301-2+1)
		require.Empty(t, g.missed)
		byID := map[string]outbox.Row{}
		for i := range g.rows {
			byID[g.rows[i].MsgID] = g.rows[i]
		}
		require.Equal(t, "changed", byID["x0"].Topic)
		require.Equal(t, "changed", byID["x299"].Topic)
		require.NotContains(t, byID, "x298")
		require.NotContains(t, byID, "x301")
		require.Equal(t, "last", g.rows[len(g.rows)-1].MsgID)
		require.JSONEq(t, `{"n":4999}`, string(byID["s4999"].Content))
	})
}

func TestTaggedGTIDs(t *testing.T) {
	t.Parallel()
	b := newBench(t, rig.MySQL(t))
	b.stream()
	b.session("SET SESSION gtid_next = 'AUTOMATIC:tag_a'", insertSQL("tagged"))
	b.insert("plain")
	require.Equal(t, []string{"tagged", "plain"}, b.read().ids())
	p := b.cursor.Position()
	require.Contains(t, p.GTID, ":tag_a:1")
	start := b.again(p)
	require.True(t, start.Usable, start.Detail)
	b.streamFrom(start.Position)
	require.Empty(t, b.read().rows)
}

func TestWithoutGTIDs(t *testing.T) {
	t.Parallel()
	b := newBench(t, rig.MySQL(t, rig.Args("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")))
	b.stream()
	b.insert("a")
	require.Equal(t, []string{"a"}, b.read().ids())
	p := b.cursor.Position()
	require.Empty(t, p.GTID)
	requireBoundary(b, p)
	b.insert("b")
	start := b.again(p)
	require.True(t, start.Usable, start.Detail)
	b.streamFrom(start.Position)
	killed := b.next()
	for killed.Len() == 0 {
		killed = b.next()
	}
	killDump(b)
	require.Empty(t, b.read().rows, "b came before the connection was cut")
}
