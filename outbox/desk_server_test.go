//go:build !unit

package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/rig"
)

// both runs a test on each flavor of server.
func both(t *testing.T, test func(t *testing.T, srv *rig.Server)) {
	t.Helper()
	t.Parallel()
	t.Run("mysql", func(t *testing.T) { t.Parallel(); test(t, rig.MySQL(t)) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); test(t, rig.MariaDB(t)) })
}

// drivers runs a test with every way in which a connection may be set up that changes what the driver sends or the server
// answers: text or prepared statements, affected or found rows.
func drivers(t *testing.T, test func(t *testing.T, srv *rig.Server, setup func(*mysql.Config))) {
	t.Helper()
	both(t, func(t *testing.T, srv *rig.Server) {
		for _, found := range []bool{false, true} {
			for _, text := range []bool{false, true} {
				t.Run(fmt.Sprintf("found=%t,text=%t", found, text), func(t *testing.T) {
					t.Parallel()
					test(t, srv, func(c *mysql.Config) { c.ClientFoundRows, c.InterpolateParams = found, text })
				})
			}
		}
	})
}

// desk is a database of the test's own with a message table.
type desk struct {
	*sql.DB
	srv      *rig.Server
	database string
}

const plainTable = "local_message"

// newDesk makes the table with all optional columns; change has a say in how connections are set up.
func newDesk(t *testing.T, srv *rig.Server, change ...func(*mysql.Config)) *desk {
	t.Helper()
	opts := outbox.AllColumns()
	opts.Options = "DEFAULT CHARSET=utf8mb4"
	return newDeskWith(t, srv, outbox.Schema(outbox.Table{Name: plainTable}, opts), change...)
}

func newDeskWith(t *testing.T, srv *rig.Server, create string, change ...func(*mysql.Config)) *desk {
	t.Helper()
	d := &desk{srv: srv, database: srv.Database(t)}
	d.DB = d.open(t, change...)
	d.exec(t, create)
	return d
}

// open returns another pool, as a service has one.
func (d *desk) open(t *testing.T, change ...func(*mysql.Config)) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.DBName = "tcp", d.srv.Addr, d.srv.User, d.srv.Password, d.database
	for _, f := range change {
		f(c)
	}
	connector, err := mysql.NewConnector(c)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func (d *desk) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	_, err := d.ExecContext(t.Context(), query, args...)
	require.NoError(t, err, query)
}

// begin opens a transaction that is rolled back at the end, if the test has not ended it.
func (d *desk) begin(t testing.TB, opts ...*sql.TxOptions) *sql.Tx {
	t.Helper()
	var o *sql.TxOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	tx, err := d.BeginTx(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// put writes messages in a transaction of their own, each by a Put.
func (d *desk) put(t testing.TB, b *outbox.Box, messages ...outbox.Message) []outbox.Receipt {
	t.Helper()
	var receipts []outbox.Receipt
	require.NoError(t, outbox.Within(t.Context(), d.DB, func(ctx context.Context, tx *sql.Tx) error {
		for _, m := range messages {
			receipt, err := b.Put(ctx, tx, m)
			if err != nil {
				return err
			}
			receipts = append(receipts, receipt)
		}
		return nil
	}))
	return receipts
}

// putAll writes messages in a transaction of their own.
func (d *desk) putAll(t testing.TB, b *outbox.Box, messages ...outbox.Message) []outbox.Receipt {
	t.Helper()
	var receipts []outbox.Receipt
	require.NoError(t, outbox.Within(t.Context(), d.DB, func(ctx context.Context, tx *sql.Tx) (err error) {
		receipts, err = b.PutAll(ctx, tx, messages)
		return err
	}))
	return receipts
}

// rows runs a query and returns each row's columns as text, NULL as "NULL".
func (d *desk) rows(t testing.TB, query string, args ...any) [][]string {
	t.Helper()
	rows, err := d.QueryContext(t.Context(), query, args...)
	require.NoError(t, err, query)
	defer rows.Close() //nolint:errcheck // rows.Err has what matters
	names, err := rows.Columns()
	require.NoError(t, err)
	var all [][]string
	for rows.Next() {
		cells, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range cells {
			into[i] = &cells[i]
		}
		require.NoError(t, rows.Scan(into...))
		line := make([]string, len(cells))
		for i, cell := range cells {
			line[i] = cell.String
			if !cell.Valid {
				line[i] = "NULL"
			}
		}
		all = append(all, line)
	}
	require.NoError(t, rows.Err())
	return all
}

// column is rows of one column.
func (d *desk) column(t testing.TB, query string, args ...any) []string {
	t.Helper()
	var values []string
	for _, row := range d.rows(t, query, args...) {
		values = append(values, row[0])
	}
	return values
}

// ids are the message ids in the table, in the order of their rows.
func (d *desk) ids(t testing.TB) []string {
	t.Helper()
	return d.column(t, "SELECT msg_id FROM "+plainTable+" ORDER BY id")
}

// counter is a transaction that counts the statements.
type counter struct {
	*sql.Tx
	execs, queries int
}

func (c *counter) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	c.execs++
	return c.Tx.ExecContext(ctx, query, args...)
}

func (c *counter) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c.queries++
	return c.Tx.QueryContext(ctx, query, args...)
}

// mute is a transaction that can't be asked anything.
type mute struct{ tx *sql.Tx }

func (m mute) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return m.tx.ExecContext(ctx, query, args...)
}

// place is where a binlog ends.
type place struct{ file, pos string }

// end returns where the server's binlog ends.
func (d *desk) end(t testing.TB) place {
	t.Helper()
	question := "SHOW BINARY LOG STATUS"
	if d.srv.Flavor == rig.FlavorMariaDB {
		question = "SHOW MASTER STATUS"
	}
	row := d.rows(t, question)[0]
	return place{row[0], row[1]}
}

// binlog returns what the server's binlog says about the desk's database from a place on.
func (d *desk) binlog(t testing.TB, from place) []string {
	t.Helper()
	var events []string
	for _, file := range d.column(t, "SHOW BINARY LOGS") {
		if file < from.file {
			continue
		}
		question := "SHOW BINLOG EVENTS IN '" + file + "'"
		if file == from.file {
			question += " FROM " + from.pos
		}
		for _, event := range d.rows(t, question) {
			if strings.Contains(event[5], d.database) {
				events = append(events, event[2]+" "+event[5])
			}
		}
	}
	return events
}

// connection returns the number of a transaction's connection.
func (d *desk) connection(t testing.TB, tx *sql.Tx) string {
	t.Helper()
	var id string
	require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id))
	return id
}

// waits returns once the connection's statement waits for a lock.
func (d *desk) waits(t testing.TB, connection string) {
	t.Helper()
	// The view is renewed only when nobody has read it for a tenth of a second.
	require.Eventually(t, func() bool {
		return rig.Transactions(t, d.DB, "trx_mysql_thread_id = "+connection+" AND trx_state = 'LOCK WAIT'") > 0
	}, 20*time.Second, 250*time.Millisecond, "a statement waits for a lock")
}

// errRolledBack is a transaction's own wish.
var errRolledBack = errors.New("rolled back on purpose")
