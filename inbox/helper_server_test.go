//go:build !unit

package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

const limit = 20 * time.Second

// world is a database with the table and an effect to be counted.
type world struct {
	server   *rig.Server
	database string
	db       *sql.DB
}

// onBoth runs the test on MySQL and on MariaDB.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, server := range map[string]func(testing.TB, ...rig.Option) *rig.Server{"mysql": rig.MySQL, "mariadb": rig.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, server(t)))
		})
	}
}

func newWorld(t testing.TB, server *rig.Server) *world {
	t.Helper()
	w := &world{server: server, database: server.Database(t)}
	w.db = w.open(t, nil)
	w.exec(t, inbox.Schema(inbox.SchemaOptions{}))
	w.exec(t, "CREATE TABLE effect (id INT AUTO_INCREMENT PRIMARY KEY, msg_id VARCHAR(64) NOT NULL)")
	w.exec(t, "CREATE TABLE counter (name VARCHAR(16) PRIMARY KEY, n INT NOT NULL)")
	w.exec(t, "INSERT INTO counter VALUES ('a', 0), ('b', 0)")
	return w
}

// open returns a pool; the options change its configuration.
func (w *world) open(t testing.TB, change func(*mysql.Config)) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(w.config(change))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func (w *world) config(change func(*mysql.Config)) *mysql.Config {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Passwd, cfg.DBName = "tcp", w.server.Addr, w.server.User, w.server.Password, w.database
	cfg.Logger = &mysql.NopLogger{}
	if change != nil {
		change(cfg)
	}
	return cfg
}

func (w *world) inbox(t testing.TB, cfg inbox.Config) *inbox.Inbox {
	t.Helper()
	if cfg.Group == "" {
		cfg.Group = "points"
	}
	in, err := inbox.New(w.db, cfg)
	require.NoError(t, err)
	return in
}

func (w *world) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	_, err := w.db.ExecContext(t.Context(), statement, args...)
	require.NoError(t, err, statement)
}

func (w *world) count(t testing.TB, query string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, w.db.QueryRowContext(t.Context(), query, args...).Scan(&n), query)
	return n
}

func (w *world) records(t testing.TB) int {
	t.Helper()
	return w.count(t, "SELECT COUNT(*) FROM consumed_message")
}

func (w *world) effects(t testing.TB) int {
	t.Helper()
	return w.count(t, "SELECT COUNT(*) FROM effect")
}

// waiting polls until n deliveries are in the statement that writes the record, which somebody else holds. (innodb_trx is
// refreshed only when nobody has asked for 100 ms.)
func (w *world) waiting(t testing.TB, n int) {
	t.Helper()
	harness.Eventually(t, limit, "deliveries wait for the record", func() (bool, string) {
		got := 0
		for _, s := range rig.Sessions(t, w.db) {
			if s.Database == w.database && strings.HasPrefix(s.Statement, "INSERT INTO `consumed_message`") {
				got++
			}
		}
		return got >= n, fmt.Sprintf("%d of %d", got, n)
	})
}

// write is a handler with an effect.
func write(id string) func(ctx context.Context, tx *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO effect (msg_id) VALUES (?)", id)
		return err
	}
}

func message(id string) inbox.Delivery {
	return inbox.Delivery{ID: id, Topic: "orders", Partition: 2, Offset: 41}
}

// dialer makes connections that the test can meddle with.
func dialer(wrap func(net.Conn) net.Conn) func(*mysql.Config) {
	return func(cfg *mysql.Config) {
		cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return wrap(conn), nil
		}
	}
}
