//go:build !unit

package lean_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/test/rig"
)

var record = flag.Bool("record", false, "write what was read from the servers to testdata")

// patience is how long a test waits for a server.
const patience = 20 * time.Second

// flavors runs a test on both servers, with instances of its own when it changes what is set globally.
func flavors(t *testing.T, test func(t *testing.T, s *rig.Server), opts ...rig.Option) {
	t.Run(rig.FlavorMySQL, func(t *testing.T) { test(t, rig.MySQL(t, opts...)) })
	t.Run(rig.FlavorMariaDB, func(t *testing.T) { test(t, rig.MariaDB(t, opts...)) })
}

// session opens one connection that reads in utf8mb4 and UTC, with the given statements run on it.
func session(t *testing.T, s *rig.Server, statements ...string) *sql.Conn {
	t.Helper()
	conn, err := s.DB(t).Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	run(t, conn, "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = ''")
	run(t, conn, statements...)
	return conn
}

func run(t *testing.T, conn *sql.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		_, err := conn.ExecContext(t.Context(), statement)
		require.NoError(t, err, "%.300s", statement)
	}
}

// query returns the text of every column.
func query(t *testing.T, conn *sql.Conn, statement string) (rows [][][]byte) {
	t.Helper()
	result, err := conn.QueryContext(t.Context(), statement)
	require.NoError(t, err, "%.300s", statement)
	defer result.Close() //nolint:errcheck // result.Err tells
	names, err := result.Columns()
	require.NoError(t, err)
	for result.Next() {
		row := make([][]byte, len(names))
		targets := make([]any, len(names))
		for i := range row {
			targets[i] = &row[i]
		}
		require.NoError(t, result.Scan(targets...))
		rows = append(rows, row)
	}
	require.NoError(t, result.Err())
	return rows
}

// binlogEnd asks where the binlog ends.
func binlogEnd(t *testing.T, s *rig.Server, conn *sql.Conn) mysql.Position {
	t.Helper()
	statement := "SHOW BINARY LOG STATUS"
	if s.Flavor == rig.FlavorMariaDB {
		statement = "SHOW MASTER STATUS"
	}
	row := query(t, conn, statement)[0]
	pos, err := strconv.ParseUint(string(row[1]), 10, 32)
	require.NoError(t, err)
	return mysql.Position{Name: string(row[0]), Pos: uint32(pos)}
}

// capture makes a change and returns the events that it wrote to the binlog, as far as they are needed to decode rows. Other
// tests write to the server at the same time: only what concerns the session's database is returned.
func capture(t *testing.T, s *rig.Server, conn *sql.Conn, change func()) (list [][]byte) {
	t.Helper()
	ours := ownEvents{database: string(query(t, conn, "SELECT DATABASE()")[0][0]), tables: map[uint64]bool{}}
	from := binlogEnd(t, s, conn)
	change()
	end := binlogEnd(t, s, conn)
	host, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: rand.Uint32N(1<<31) + 1000, Flavor: s.Flavor, Host: host, Port: uint16(number), User: s.User, Password: s.Password,
		Logger: slog.New(slog.DiscardHandler),
		RowsEventDecodeFunc: func(e *replication.RowsEvent, data []byte) error {
			_, err := e.DecodeHeader(data) // which table; the rest is the test's
			return err
		},
	})
	defer syncer.Close()
	stream, err := syncer.StartSync(from)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		event, err := stream.GetEvent(ctx)
		require.NoError(t, err)
		switch event.Event.(type) {
		case *replication.FormatDescriptionEvent:
			list = append(list, event.RawData)
			continue // its position is not where the stream is
		case *replication.TableMapEvent, *replication.RowsEvent, *replication.TransactionPayloadEvent:
			if ours.has(event.Event) {
				list = append(list, event.RawData)
			}
		}
		if event.Header.LogPos >= end.Pos {
			return list
		}
	}
}

// ownEvents tells the events of one database from those of others.
type ownEvents struct {
	database string
	tables   map[uint64]bool // by the ids of TABLE_MAP events
}

func (o ownEvents) has(event replication.Event) bool {
	switch e := event.(type) {
	case *replication.TableMapEvent:
		o.tables[e.TableID] = string(e.Schema) == o.database
		return o.tables[e.TableID]
	case *replication.RowsEvent:
		return o.tables[e.TableID]
	case *replication.TransactionPayloadEvent:
		return slices.ContainsFunc(e.Events, func(inner *replication.BinlogEvent) bool {
			table, ok := inner.Event.(*replication.TableMapEvent)
			return ok && string(table.Schema) == o.database
		})
	}
	return false
}

// columnsOf reads what information_schema says about a table, in the order of its columns.
func columnsOf(t *testing.T, conn *sql.Conn, database, table string) (names []string, columns []lean.Column) {
	t.Helper()
	for i, row := range query(t, conn, fmt.Sprintf(`SELECT column_name, COALESCE(character_set_name, ''), column_type LIKE '%%unsigned%%', data_type
		FROM information_schema.columns WHERE table_schema = '%s' AND table_name = '%s' ORDER BY ordinal_position`, database, table)) {
		names = append(names, string(row[0]))
		columns = append(columns, lean.Column{Index: i, Charset: string(row[1]), Unsigned: string(row[2]) == "1", DataType: string(row[3])})
	}
	return names, columns
}
