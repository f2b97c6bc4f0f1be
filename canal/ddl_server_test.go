//go:build !unit

package canal_test

import (
	"fmt"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/rig"
)

// onAll runs a test on MySQL with column names in the binlog and without, and on MariaDB with both.
func onAll(t *testing.T, test func(t *testing.T, server *rig.Server, named bool)) {
	t.Helper()
	const minimal, full = "--binlog-row-metadata=MINIMAL", "--binlog-row-metadata=FULL"
	t.Run("mysql full", func(t *testing.T) { t.Parallel(); test(t, rig.MySQL(t), true) })
	t.Run("mysql minimal", func(t *testing.T) { t.Parallel(); test(t, rig.MySQL(t, rig.Args(minimal)), false) })
	t.Run("mariadb full", func(t *testing.T) { t.Parallel(); test(t, rig.MariaDB(t, rig.Args(full)), true) })
	t.Run("mariadb no log", func(t *testing.T) { t.Parallel(); test(t, rig.MariaDB(t), false) })
}

// requireSane checks that rows are what insert made, with nothing shifted.
func requireSane(t *testing.T, g *got) {
	t.Helper()
	for i := range g.rows {
		r := &g.rows[i]
		require.Equal(t, "topic-"+r.MsgID, r.Topic)
		require.JSONEq(t, fmt.Sprintf(`{"id":%q}`, r.MsgID), string(r.Content))
		require.NotZero(t, r.ID)
	}
}

func TestS21ColumnsChangedBehindTheStream(t *testing.T) {
	t.Parallel()
	changes := []string{
		"ADD COLUMN tenant VARCHAR(16) NOT NULL DEFAULT 'x' AFTER id",
		"ADD COLUMN first VARCHAR(64) NOT NULL DEFAULT 'y' FIRST",
		"DROP COLUMN first",
		"MODIFY topic VARCHAR(64) NOT NULL FIRST",
		"MODIFY msg_content TEXT NOT NULL FIRST",
		"MODIFY create_time DATETIME NOT NULL AFTER update_time",
	}
	onAll(t, func(t *testing.T, server *rig.Server, named bool) {
		b := newBench(t, server)
		b.stream()
		n := 0
		for _, change := range changes {
			for range 3 {
				n++
				b.insert(fmt.Sprintf("old%d", n))
			}
			b.exec("ALTER TABLE local_message " + change)
			b.insert(fmt.Sprintf("new%d", n))
		}
		g := b.read()
		requireSane(t, g)
		if named {
			require.Len(t, g.rows, 4*len(changes))
		} else {
			// What was written before the last change can't be told apart with certainty.
			require.NotEmpty(t, g.rows)
			require.Equal(t, 4*len(changes), len(g.rows)+g.missed["columns"])
			require.Contains(t, g.ids(), fmt.Sprintf("new%d", n))
		}
		// Live, nothing is missed.
		for i, change := range []string{"ADD COLUMN live INT NOT NULL DEFAULT 3 FIRST", "DROP COLUMN live", "MODIFY msg_id VARCHAR(64) NOT NULL AFTER topic"} {
			b.exec("ALTER TABLE local_message " + change)
			b.insert(fmt.Sprintf("live%d", i))
			g := b.read()
			require.Equal(t, []string{fmt.Sprintf("live%d", i)}, g.ids(), change)
			requireSane(t, g)
		}
	})
}

func TestS22DDLNoParserReads(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		for i, change := range []string{
			"ADD COLUMN g POINT NULL FIRST", "ADD COLUMN i VARCHAR(8) INVISIBLE AFTER id",
			"ADD COLUMN e INT SECONDARY_ENGINE_ATTRIBUTE='{}' FIRST", "ALTER COLUMN topic SET INVISIBLE",
			"ADD COLUMN v VARCHAR(64) AS (CONCAT(msg_id, topic)) VIRTUAL FIRST",
		} {
			b.exec("ALTER TABLE local_message " + change)
			b.insert(fmt.Sprintf("m%d", i))
			g := b.read()
			require.Equal(t, []string{fmt.Sprintf("m%d", i)}, g.ids(), "%s: %v", change, g.missed)
			requireSane(t, g)
		}
	}
	t.Run("full", func(t *testing.T) { t.Parallel(); test(t, rig.MySQL(t)) })
	t.Run("minimal", func(t *testing.T) { t.Parallel(); test(t, rig.MySQL(t, rig.Args("--binlog-row-metadata=MINIMAL"))) })
}

func TestS24OnlineSchemaChange(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.insert("before")
		b.stream()
		b.exec("CREATE TABLE _local_message_gho LIKE local_message", "ALTER TABLE _local_message_gho ADD c VARCHAR(255) FIRST",
			"CREATE TABLE _local_message_ghc (id INT PRIMARY KEY, state VARCHAR(64))")
		b.insert("during")
		b.exec("INSERT IGNORE INTO _local_message_gho (id, msg_id, topic, msg_content, status, create_time, update_time)"+
			" SELECT id, msg_id, topic, msg_content, status, create_time, update_time FROM local_message",
			"RENAME TABLE local_message TO _local_message_del, _local_message_gho TO local_message")
		b.insert("after")
		b.exec("DROP TABLE _local_message_del, _local_message_ghc")
		g := b.read()
		require.Contains(t, g.ids(), "after", "%v", g.missed)
		require.NotContains(t, g.ids(), "before", "copies into the shadow table are not messages")
		require.Equal(t, 2, len(g.rows)+g.missed["columns"])
		requireSane(t, g)
		require.Positive(t, g.kicks)
	})
}

func TestS26TableRenamedAway(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, server *rig.Server, named bool) {
		b := newBench(t, server)
		b.stream()
		b.insert("a", "b", "c")
		b.exec("RENAME TABLE local_message TO local_message_hold")
		g := &got{missed: map[string]int{}}
		require.Eventually(t, func() bool {
			tx := b.next()
			for row, err := range tx.Rows() {
				require.NoError(t, err)
				g.rows = append(g.rows, row)
			}
			return len(g.rows)+sum(tx.Missed) >= 3 || len(g.rows)+add(g, tx.Missed) >= 3
		}, 20*time.Second, time.Millisecond)
		requireSane(t, g)
		if named {
			require.Len(t, g.rows, 3, "the binlog itself tells the columns")
		}
		b.exec("RENAME TABLE local_message_hold TO local_message")
		b.insert("back")
		require.Contains(t, b.read().ids(), "back")
	})
}

func sum(missed map[string]int) (n int) {
	for _, m := range missed {
		n += m
	}
	return n
}

func add(g *got, missed map[string]int) int {
	for reason, n := range missed {
		g.missed[reason] += n
	}
	return sum(g.missed)
}

func TestS29MetadataCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, rig.MySQL(t, rig.Args("--binlog-row-metadata=MINIMAL")))
	admin := b.server.DB(t)
	exec := func(statement string) {
		t.Helper()
		_, err := admin.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	exec("CREATE USER s29@'%' IDENTIFIED BY 'pw'")
	exec("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO s29@'%'")
	exec("GRANT SELECT ON `" + b.database + "`.* TO s29@'%'")
	b.cfg.User, b.cfg.Password = "s29", "pw"
	b.stream()
	b.insert("one")
	require.Equal(t, []string{"one"}, b.read().ids())
	exec("REVOKE SELECT ON `" + b.database + "`.* FROM s29@'%'")
	b.exec("ALTER TABLE local_message ADD COLUMN c INT FIRST")
	for i := range 50 {
		b.insert(fmt.Sprintf("m%d", i))
	}
	granted := make(chan error, 1)
	go func() {
		standstill(b)
		_, err := admin.ExecContext(t.Context(), "GRANT SELECT ON `"+b.database+"`.* TO s29@'%'")
		granted <- err
	}()
	g := b.read()
	require.NoError(t, <-granted)
	require.Len(t, g.rows, 50, "missed %v", g.missed)
	require.Empty(t, g.missed)
	requireSane(t, g)
}

// standstill waits until the reader has not moved for a second.
func standstill(b *bench) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	at, still := b.reader.Read(), 0
	for range 200 {
		<-tick.C
		if now := b.reader.Read(); now != at {
			at, still = now, 0
		}
		if still++; still > 10 {
			return
		}
	}
}

func TestS31InvisibleColumnsAndKeys(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, server *rig.Server, named bool) {
		b := newBench(t, server)
		b.exec("ALTER TABLE local_message ADD COLUMN shard INT DEFAULT 0 INVISIBLE")
		b.stream()
		b.insert("m1")
		require.Equal(t, []string{"m1"}, b.read().ids())
		if server.Flavor == rig.FlavorMySQL {
			b.session("SET SESSION sql_generate_invisible_primary_key = ON", "DROP TABLE local_message",
				"CREATE TABLE local_message (id BIGINT, msg_id VARCHAR(64), topic VARCHAR(64), msg_content TEXT, status TINYINT,"+
					" retry_count INT, next_retry_time DATETIME, create_time DATETIME, update_time DATETIME)")
			b.exec("INSERT INTO local_message VALUES (77, 'm2', 't2', 'body', 0, 0, NULL, NOW(), NOW())")
			// The marker of read has no id here.
			tx := b.next()
			for tx.Len() == 0 {
				tx = b.next()
			}
			for row, err := range tx.Rows() {
				require.NoError(t, err)
				require.Equal(t, uint64(77), row.ID)
				require.Equal(t, "m2", row.MsgID)
			}
		}
	}
	onAll(t, test)
}

func TestS33NeededColumnRenamed(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, server *rig.Server, _ bool) {
		b := newBench(t, server)
		b.stream()
		b.insert("a")
		require.Equal(t, []string{"a"}, b.read().ids())
		b.exec("ALTER TABLE local_message RENAME COLUMN topic TO topic_name")
		b.exec("INSERT INTO local_message (msg_id, topic_name, msg_content, status, create_time, update_time) VALUES ('lost', 't', 'x', 0, NOW(), NOW())")
		tx := b.next()
		for len(tx.Missed) == 0 {
			require.Zero(t, tx.Len())
			tx = b.next()
		}
		require.Equal(t, 1, tx.Missed["gone"])
		require.True(t, tx.Kick)
		b.exec("ALTER TABLE local_message RENAME COLUMN topic_name TO topic")
		b.insert("b")
		require.Equal(t, []string{"b"}, b.read().ids())
	})
}

func TestS35LargeUnsignedIDs(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, server *rig.Server, _ bool) {
		b := newBench(t, server)
		b.exec("ALTER TABLE local_message MODIFY id BIGINT UNSIGNED NOT NULL")
		b.stream()
		want := []uint64{9223372036854775810, 18446744073709551614}
		for i, id := range want {
			b.exec(fmt.Sprintf("INSERT INTO local_message (id, msg_id, topic, msg_content, status, create_time, update_time)"+
				" VALUES (%d, 'u%d', 't', 'x', 0, NOW(), NOW())", id, i))
		}
		ids := []uint64{}
		tx := b.next()
		for ; len(ids) < len(want); tx = b.next() {
			for row, err := range tx.Rows() {
				require.NoError(t, err)
				ids = append(ids, row.ID)
			}
			if len(ids) == len(want) {
				break
			}
		}
		require.Equal(t, want, ids)
	})
}

func TestS36Charsets(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, server *rig.Server, _ bool) {
		b := newBench(t, server)
		b.exec("ALTER TABLE local_message MODIFY msg_content TEXT CHARACTER SET gbk NOT NULL, MODIFY msg_id VARCHAR(64) CHARACTER SET latin1 NOT NULL")
		b.stream()
		body := `{"s":"中文"}`
		b.exec(`INSERT INTO local_message (msg_id, topic, msg_content, status, create_time, update_time) VALUES ('l1é', 'täg', '` + body + `', 0, NOW(), NOW())`)
		g := b.read()
		require.Equal(t, []string{"l1é"}, g.ids(), "%v", g.missed)
		require.Equal(t, body, string(g.rows[0].Content))
		require.Equal(t, "täg", g.rows[0].Topic)
		require.True(t, utf8.Valid(g.rows[0].Content))
		var id string
		require.NoError(t, b.db.QueryRowContext(t.Context(), "SELECT msg_id FROM local_message WHERE msg_id = ?", g.rows[0].MsgID).Scan(&id))
	})
}

func TestS39ZeroDates(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		b.session("SET SESSION sql_mode = ''", "INSERT INTO local_message (msg_id, topic, msg_content, status, next_retry_time, create_time, update_time)"+
			" VALUES ('z', 't', 'x', 0, '0000-00-00 00:00:00', '2026-00-10 00:00:00', NOW())")
		g := b.read()
		require.Equal(t, []string{"z"}, g.ids())
		require.Equal(t, "0000-00-00 00:00:00", g.rows[0].NextRetry)
		require.Equal(t, "2026-00-10 00:00:00", g.rows[0].Created)
	})
}

func TestS41NamesThatLookAlike(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		for _, name := range []string{"local_message_bak", "xlocal_message", "local_message_12", "local_message_x"} {
			b.exec(fmt.Sprintf(schema, name))
		}
		b.cfg.Tables = append(b.cfg.Tables, b.database+`./local_message_\d+/`)
		b.stream()
		for _, name := range []string{"local_message_bak", "xlocal_message", "local_message_12", "local_message_x"} {
			b.exec(fmt.Sprintf("INSERT INTO %s (msg_id, topic, msg_content, status, create_time, update_time) VALUES ('%s', 't', 'x', 0, NOW(), NOW())", name, name))
		}
		g := b.read()
		require.Equal(t, []string{"local_message_12"}, g.ids())
		require.Equal(t, outbox.Table{Database: b.database, Name: "local_message_12"}, g.rows[0].Table)
	})
}

func TestS41NamesDifferByCaseOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t, rig.MariaDB(t, rig.Args("--lower-case-table-names=1")))
	b.cfg.Tables = []string{"/" + "RIG_.*" + "/.Local_Message"}
	b.stream()
	b.insert("m1")
	require.Equal(t, []string{"m1"}, b.read().ids())
}
