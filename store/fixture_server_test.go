//go:build !unit

package store

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/mysql"
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

// desk is a database of the test's own with one table, the administrator's pool, and a store of a user with the least
// privileges.
type desk struct {
	*Store
	db    *sql.DB
	table outbox.Table
	cfg   Config
}

// newDesk makes the pattern's table with the optional columns.
func newDesk(t *testing.T, srv *rig.Server, change ...func(*Config)) *desk {
	t.Helper()
	return newDeskWith(t, srv, "", change...)
}

// newDeskWith makes the table by a given CREATE TABLE, in which %s stands for its name.
func newDeskWith(t *testing.T, srv *rig.Server, create string, change ...func(*Config)) *desk {
	t.Helper()
	database := srv.Database(t)
	d := &desk{db: srv.DB(t), table: outbox.Table{Database: database, Name: "local_message"}}
	if create == "" {
		create = strings.Replace(outbox.Schema(outbox.Table{Name: "X"}, outbox.AllColumns()), "`X`", "%s", 1) + " DEFAULT CHARSET=utf8mb4"
	}
	d.exec(t, fmt.Sprintf(create, outbox.QuoteTable(d.table)))
	user, password := srv.RelayUser(t, rig.On(database), rig.MinimalImages())
	d.cfg = Config{Config: mysql.Config{Addr: srv.Addr, User: user, Password: password}, Tables: []string{database + ".local_message"}}
	for _, c := range change {
		c(&d.cfg)
	}
	d.Store = open(t, d.cfg)
	return d
}

func open(t *testing.T, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg, zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func (d *desk) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	_, err := d.db.ExecContext(t.Context(), query, args...)
	require.NoError(t, err, query)
}

func (d *desk) name() string { return outbox.QuoteTable(d.table) }

// insert adds a row with the given status and next_retry_time, an SQL expression, and returns its ref.
func (d *desk) insert(t testing.TB, msgID string, status int, nextRetry string) outbox.Ref {
	t.Helper()
	return d.insertTopic(t, msgID, "orders", status, nextRetry)
}

func (d *desk) insertTopic(t testing.TB, msgID, topic string, status int, nextRetry string) outbox.Ref {
	t.Helper()
	result, err := d.db.ExecContext(t.Context(), "INSERT INTO "+d.name()+
		" (msg_id,topic,msg_content,status,next_retry_time,create_time,update_time) VALUES (?,?,?,?,"+nextRetry+",NOW()-INTERVAL 1 MINUTE,NOW()-INTERVAL 1 MINUTE)",
		msgID, topic, `{"id":"`+msgID+`"}`, status)
	require.NoError(t, err)
	id, err := result.LastInsertId()
	require.NoError(t, err)
	return outbox.Ref{Table: d.table, ID: uint64(id), MsgID: msgID} //nolint:gosec // ids are positive here
}

// fill adds n pending rows quickly, with consecutive ids from 1, and returns their refs.
func (d *desk) fill(t testing.TB, n int, topic, nextRetry string) []outbox.Ref {
	t.Helper()
	tx, err := d.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	refs := make([]outbox.Ref, 0, n)
	for from := 1; from <= n; from += BatchSize {
		var values []string
		for id := from; id < from+BatchSize && id <= n; id++ {
			ref := outbox.Ref{Table: d.table, ID: uint64(id), MsgID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", id)} //nolint:gosec // positive
			refs = append(refs, ref)
			values = append(values, fmt.Sprintf("(%d,'%s','%s','{\"order_id\":%d,\"text\":\"0123456789012345678901234567890123456789\"}',0,%s,NOW()-INTERVAL 1 MINUTE,NOW())",
				id, ref.MsgID, topic, id, nextRetry))
		}
		_, err := tx.ExecContext(t.Context(), "INSERT INTO "+d.name()+" (id,msg_id,topic,msg_content,status,next_retry_time,create_time,update_time) VALUES "+strings.Join(values, ","))
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit())
	return refs
}

// state is what a test looks at in a row.
type state struct {
	Status, Retries int
	HasNext         bool
	LastError       string
}

func (d *desk) state(t testing.TB, ref outbox.Ref) state {
	t.Helper()
	var s state
	err := d.db.QueryRowContext(t.Context(), "SELECT status, COALESCE(retry_count,0), next_retry_time IS NOT NULL, COALESCE(last_error,'') FROM "+d.name()+
		" WHERE msg_id="+mysql.Literal(ref.MsgID)).Scan(&s.Status, &s.Retries, &s.HasNext, &s.LastError)
	require.NoError(t, err)
	return s
}

// number runs a query that yields one number.
func (d *desk) count(t testing.TB, query string) int64 {
	t.Helper()
	var n int64
	require.NoError(t, rig.Shown(func() error { return d.db.QueryRowContext(t.Context(), query).Scan(&n) }), query)
	return n
}

// until polls a condition for a bounded time.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 20*time.Second, 20*time.Millisecond, what)
}

func msgIDs(rows []outbox.Row) []string {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].MsgID
	}
	return ids
}

func (d *desk) candidates(t testing.TB, q Query) []outbox.Row {
	t.Helper()
	rows, err := d.Candidates(t.Context(), q)
	require.NoError(t, err)
	return rows
}

// plan explains a statement in JSON, in the classic form on MySQL too.
func (d *desk) plan(t testing.TB, statement string) string {
	t.Helper()
	conn, err := d.db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	// Unknown to MariaDB, whose only form this is.
	_, _ = conn.ExecContext(t.Context(), "SET SESSION explain_json_format_version=1")
	var plan string
	require.NoError(t, conn.QueryRowContext(t.Context(), "EXPLAIN FORMAT=JSON "+statement).Scan(&plan), statement)
	return plan
}

// refs names rows that need not exist.
func (d *desk) refs(n int) []outbox.Ref {
	refs := make([]outbox.Ref, n)
	for i := range refs {
		refs[i] = outbox.Ref{Table: d.table, ID: uint64(i) + 1, MsgID: fmt.Sprint(i)} //nolint:gosec // positive
	}
	return refs
}
