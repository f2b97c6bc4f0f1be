//go:build !unit

package canal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/rig"
)

// schema is the pattern's table.
const schema = `CREATE TABLE %s (
  id              BIGINT PRIMARY KEY AUTO_INCREMENT,
  msg_id          VARCHAR(64) NOT NULL,
  topic           VARCHAR(64) NOT NULL,
  msg_content     TEXT NOT NULL,
  status          TINYINT NOT NULL,
  retry_count     INT DEFAULT 0,
  next_retry_time DATETIME,
  create_time     DATETIME NOT NULL,
  update_time     DATETIME NOT NULL,
  UNIQUE KEY uk_msg_id (msg_id),
  KEY idx_status_retry (status, next_retry_time)
) CHARACTER SET utf8mb4`

// onBoth runs a test on MySQL and on MariaDB.
func onBoth(t *testing.T, test func(t *testing.T, server *rig.Server), opts ...rig.Option) {
	t.Helper()
	t.Run("mysql", func(t *testing.T) { t.Parallel(); test(t, rig.MySQL(t, opts...)) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); test(t, rig.MariaDB(t, opts...)) })
}

// bench is a database with a local message table, and a reader of its server.
type bench struct {
	t        testing.TB
	server   *rig.Server
	db       *sql.DB
	database string
	cfg      canal.Config
	reader   *canal.Reader
	cursor   *canal.Cursor
	start    position.Position
}

// newBench makes the database and the table; the reader is started at the present end by stream.
func newBench(t testing.TB, server *rig.Server, tables ...string) *bench {
	t.Helper()
	b := &bench{t: t, server: server, database: server.Database(t)}
	b.db = server.DBOf(t, b.database)
	b.exec(fmt.Sprintf(schema, "local_message"))
	if tables == nil {
		tables = []string{b.database + ".local_message"}
	}
	user, password := server.RelayUser(t)
	b.cfg = canal.Config{
		Config: mysql.Config{Addr: server.Addr, User: user, Password: password}, Name: t.Name(), Tables: tables,
		HeartbeatPeriod: 100 * time.Millisecond, ReadTimeout: 5 * time.Second, SpillDir: t.TempDir(),
	}
	return b
}

func (b *bench) exec(statements ...string) {
	b.t.Helper()
	for _, s := range statements {
		_, err := b.db.ExecContext(b.t.Context(), s)
		require.NoError(b.t, err, s)
	}
}

// session runs statements in one connection of their own.
func (b *bench) session(statements ...string) {
	b.t.Helper()
	conn, err := b.db.Conn(b.t.Context())
	require.NoError(b.t, err)
	for _, s := range statements {
		_, err := conn.ExecContext(b.t.Context(), s)
		require.NoError(b.t, err, s)
	}
	// The settings of the session must not reach another test.
	require.ErrorIs(b.t, conn.Raw(func(any) error { return driver.ErrBadConn }), driver.ErrBadConn)
}

// insert adds messages m1, m2, ... with topic and content derived from their id.
func (b *bench) insert(ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		b.exec(insertSQL(id))
	}
}

func insertSQL(id string) string {
	return fmt.Sprintf("INSERT INTO local_message (msg_id, topic, msg_content, status, create_time, update_time)"+
		" VALUES ('%s', 'topic-%s', '{\"id\":\"%s\"}', 0, NOW(), NOW())", id, id, id)
}

// open makes the reader.
func (b *bench) open() *canal.Reader {
	b.t.Helper()
	reader, err := canal.Open(b.t.Context(), b.cfg, zerolog.New(zerolog.NewTestWriter(b.t)), nil)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, reader.Close()) })
	return reader
}

// stream starts the reader at the present end.
func (b *bench) stream() {
	b.t.Helper()
	b.reader = b.open()
	start, err := b.reader.Resolve(b.t.Context(), position.Position{}, false, canal.StartNow)
	require.NoError(b.t, err)
	b.streamFrom(start.Position)
}

func (b *bench) streamFrom(p position.Position) {
	b.t.Helper()
	if b.reader == nil {
		b.reader = b.open()
	}
	b.start = p
	cursor, err := canal.NewCursor(p)
	require.NoError(b.t, err)
	b.cursor = cursor
	require.NoError(b.t, b.reader.Stream(b.t.Context(), p))
}

// next returns the next transaction and moves the cursor.
func (b *bench) next() *assemble.Transaction {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	tx, err := b.reader.Next(ctx)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, tx.Close()) })
	require.NoError(b.t, b.cursor.Advance(tx.End))
	return tx
}

// got is what was read up to a marker message.
type got struct {
	rows   []outbox.Row
	missed map[string]int
	kicks  int
	// revived are the ids of the rows that updates made due.
	revived []uint64
	more    int
	xaRows  int
	altered int
	txns    int // with rows
}

func (g *got) ids() []string {
	ids := []string{}
	for i := range g.rows {
		ids = append(ids, g.rows[i].MsgID)
	}
	return ids
}

// readTo reads until a message comes, which is left out.
func (b *bench) readTo(marker string) *got {
	b.t.Helper()
	g := &got{missed: map[string]int{}}
	for {
		tx := b.next()
		if tx.Kick {
			g.kicks++
		}
		for _, ref := range tx.Revived {
			g.revived = append(g.revived, ref.ID)
		}
		g.more += tx.RevivedMore
		g.xaRows += tx.XARows
		if tx.Altered {
			g.altered++
		}
		for reason, n := range tx.Missed {
			g.missed[reason] += n
		}
		if tx.Len() > 0 {
			g.txns++
		}
		n, done := 0, false
		for row, err := range tx.Rows() {
			require.NoError(b.t, err)
			n++
			if row.MsgID == marker {
				done = true
				continue
			}
			g.rows = append(g.rows, row)
		}
		require.Equal(b.t, tx.Len(), n)
		if done {
			g.txns--
			return g
		}
	}
}

// read inserts a marker and reads up to it.
func (b *bench) read() *got {
	b.t.Helper()
	b.insert("marker")
	g := b.readTo("marker")
	b.exec("DELETE FROM local_message WHERE msg_id = 'marker'")
	return g
}

// requireBoundary checks that a position is between two transactions, by the server's own account.
func requireBoundary(b *bench, p position.Position) {
	b.t.Helper()
	rows, err := b.db.QueryContext(b.t.Context(), fmt.Sprintf("SHOW BINLOG EVENTS IN '%s' FROM %d LIMIT 1", p.File, p.Pos))
	require.NoError(b.t, err, "no event starts at %s", p)
	defer rows.Close() //nolint:errcheck // only read
	for rows.Next() {
		var file, kind, info string
		var pos, server, end uint64
		require.NoError(b.t, rows.Scan(&file, &pos, &kind, &server, &end, &info))
		require.Contains(b.t, []string{"Gtid", "Anonymous_Gtid", "Rotate"}, kind, "%s is in the middle of a transaction: %s", p, info)
	}
	require.NoError(b.t, rows.Err())
}
