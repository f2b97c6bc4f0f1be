//go:build !unit

package mysql

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

// strange is what an administrator may have set for all sessions of a server, for reasons of his own.
var strange = []string{
	"SET GLOBAL sql_select_limit=2", "SET GLOBAL sql_safe_updates=1", "SET GLOBAL completion_type='CHAIN'",
	"SET GLOBAL foreign_key_checks=0", "SET GLOBAL unique_checks=0", "SET GLOBAL max_join_size=1", "SET GLOBAL sql_mode='ANSI_QUOTES'",
	"SET GLOBAL transaction_isolation='SERIALIZABLE'", "SET GLOBAL autocommit=0",
	"SET GLOBAL init_connect='SET NAMES latin1, autocommit=0, sql_select_limit=1'",
}

// strangeServer starts a server of the test's own, with a table `本地消息` of three rows, whose sessions are strange. The
// connection is one from before.
func strangeServer(t *testing.T, start func(testing.TB, ...rig.Option) *rig.Server) (*desk, *sql.Conn) {
	t.Helper()
	srv := start(t, rig.Own())
	d := newDesk(t, srv)
	d.exec(t, "CREATE TABLE "+d.database+".本地消息 (id INT PRIMARY KEY, n INT) ENGINE=InnoDB")
	d.exec(t, "INSERT INTO "+d.database+".本地消息 VALUES (1,0),(2,0),(3,0)")
	conn, err := d.db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	own := append([]string(nil), strange...)
	if srv.Flavor == rig.FlavorMariaDB {
		own[7] = "SET GLOBAL tx_isolation='SERIALIZABLE'"
		own = append(own, "SET GLOBAL tx_read_only=1", "SET GLOBAL max_statement_time=0.3")
	} else {
		own = append(own, "SET GLOBAL transaction_read_only=1", "SET GLOBAL max_execution_time=300")
	}
	for _, statement := range own {
		_, err := conn.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	return d, conn
}

// quickly is more than an ALTER TABLE of three rows takes, and less than a wait for a lock.
const quickly = 5 * time.Second

func eachFlavor(t *testing.T, test func(t *testing.T, start func(testing.TB, ...rig.Option) *rig.Server)) {
	t.Helper()
	t.Run("mysql", func(t *testing.T) { test(t, rig.MySQL) })
	t.Run("mariadb", func(t *testing.T) { test(t, rig.MariaDB) })
}

// X32, X33, X34: what a statement does depends on nothing that the server hands out.
func TestStrangeSessionsAreSetRight(t *testing.T) {
	eachFlavor(t, func(t *testing.T, start func(testing.TB, ...rig.Option) *rig.Server) {
		d, before := strangeServer(t, start)
		table := d.database + ".本地消息"
		require.NoError(t, d.Run(t.Context(), "look", func(ctx context.Context, conn *sql.Conn) error {
			for condition, why := range map[string]string{
				"@@autocommit=1":                    "each statement is a transaction of its own",
				"@@sql_select_limit>1000000":        "lists are whole",
				"@@sql_big_selects=1":               "joins are allowed",
				"@@sql_safe_updates=0":              "UPDATEs are bounded by their own conditions",
				"@@completion_type='NO_CHAIN'":      "COMMIT ends a transaction and begins none",
				"@@foreign_key_checks=1":            "no orphans",
				"@@unique_checks=1":                 "no duplicates",
				"@@sql_mode=''":                     "quoting is known",
				"@@character_set_client='utf8mb4'":  "texts are UTF-8",
				"@@character_set_results='utf8mb4'": "texts are UTF-8",
				"@@innodb_lock_wait_timeout=3":      "locks are waited for shortly",
			} {
				found, err := Texts(ctx, conn, "SELECT 1 FROM DUAL WHERE "+condition)
				assert.NoError(t, err, condition)
				assert.Len(t, found, 1, "%s: %s", condition, why)
			}
			ids, err := Texts(ctx, conn, "SELECT a.id FROM "+table+" a JOIN "+table+" b")
			assert.NoError(t, err)
			assert.Len(t, ids, 9, "the whole list")
			_, err = Texts(ctx, conn, "SELECT SLEEP(0.6) FROM "+table+" WHERE id=1")
			assert.NoError(t, err, "the server does not cut long statements off")
			return nil
		}))
		// What was read is locked by nobody afterwards: an ALTER TABLE goes through at once.
		ctx, cancel := context.WithTimeout(t.Context(), quickly)
		defer cancel()
		_, err := before.ExecContext(ctx, "ALTER TABLE "+table+" ADD COLUMN x INT")
		require.NoError(t, err)
	})
}

// A COMMIT that begins another transaction would take in what follows, and keep it from being committed.
func TestWritesOfStrangeSessionsAreCommitted(t *testing.T) {
	eachFlavor(t, func(t *testing.T, start func(testing.TB, ...rig.Option) *rig.Server) {
		d, before := strangeServer(t, start)
		table := d.database + ".本地消息"
		one, err := NewPool(d.cfg, Options{Size: 1}, zerolog.Nop())
		require.NoError(t, err)
		defer func() { require.NoError(t, one.Close()) }()
		require.NoError(t, one.Run(t.Context(), "write", func(ctx context.Context, conn *sql.Conn) error {
			return Transact(ctx, conn, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE "+table+" SET n=1 WHERE n=0 AND id<3")
				return err
			})
		}))
		require.NoError(t, one.Run(t.Context(), "write", func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, "UPDATE "+table+" SET n=2 WHERE n=0")
			return err
		}))
		var n int
		require.NoError(t, before.QueryRowContext(t.Context(), "SELECT SUM(n) FROM "+table).Scan(&n))
		assert.Equal(t, 4, n, "seen by another session")
	})
}

// X58: a session that was made while the global binlog_format was STATEMENT is set right, or given up when it refuses.
func TestSessionsMadeUnderStatementFormat(t *testing.T) {
	eachFlavor(t, func(t *testing.T, start func(testing.TB, ...rig.Option) *rig.Server) {
		srv := start(t, rig.Own())
		for name, grants := range map[string][]rig.Grant{"with the right to set it": {rig.MinimalImages()}, "without": nil} {
			t.Run(name, func(t *testing.T) {
				d := newDesk(t, srv, grants...)
				d.exec(t, "CREATE TABLE "+d.database+".t (id INT PRIMARY KEY, n INT) ENGINE=InnoDB")
				d.exec(t, "INSERT INTO "+d.database+".t VALUES (1,0)")
				write := func() error {
					return d.Run(t.Context(), "write", func(ctx context.Context, conn *sql.Conn) error {
						_, err := conn.ExecContext(ctx, "UPDATE "+d.database+".t SET n=n+1 WHERE id=1")
						return err
					})
				}
				d.exec(t, "SET GLOBAL binlog_format='STATEMENT'")
				t.Cleanup(func() { _, _ = srv.DB(t).Exec("SET GLOBAL binlog_format='ROW'") }) //nolint:noctx // the test's is over
				if grants != nil {
					require.NoError(t, write())
				} else {
					err := write()
					require.Equal(t, uint16(CodeStatementFormat), Code(err), "%v", err)
					require.ErrorIs(t, err, ErrServer)
				}
				d.exec(t, "SET GLOBAL binlog_format='ROW'")
				require.NoError(t, write(), "without a restart")
			})
		}
	})
}
