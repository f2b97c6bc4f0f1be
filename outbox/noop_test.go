package outbox_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
)

// everything is the optional columns.
var everything = []string{"msg_key", "headers", "trace_parent"}

// noop is a database that takes every statement and does nothing, as fast as it can.
type noop struct {
	columns                                   []string // that the table has
	statements, questions, commits, rollbacks atomic.Int64
	refuse, commit, rollback                  error
}

func (n *noop) Connect(context.Context) (driver.Conn, error) { return (*noopConn)(n), nil }
func (n *noop) Driver() driver.Driver                        { return nil }

type noopConn noop

func (c *noopConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not here") }
func (c *noopConn) Close() error                        { return nil }
func (c *noopConn) Begin() (driver.Tx, error)           { return c, c.refuse }

func (c *noopConn) Commit() error {
	c.commits.Add(1)
	return c.commit
}

func (c *noopConn) Rollback() error {
	c.rollbacks.Add(1)
	return c.rollback
}

func (c *noopConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	c.statements.Add(1)
	return answer(1), nil
}

// QueryContext answers the question for the table's columns.
func (c *noopConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	c.questions.Add(1)
	return columnsOnly(c.columns), nil
}

// columnsOnly is a result without a row.
type columnsOnly []string

func (c columnsOnly) Columns() []string         { return c }
func (c columnsOnly) Close() error              { return nil }
func (c columnsOnly) Next([]driver.Value) error { return io.EOF }

func (n *noop) open(t testing.TB) *sql.DB {
	t.Helper()
	db := sql.OpenDB(n)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// script is an Execer that notes what it is given and answers by a script. It can't be asked for columns.
type script struct {
	queries []string
	args    [][]any
	answers []int64 // LastInsertId, one for each statement; then 1, 2 and so on
	err     error
}

type answer int64

func (a answer) LastInsertId() (int64, error) { return int64(a), nil }
func (a answer) RowsAffected() (int64, error) { return 1, nil }

func (s *script) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	s.queries, s.args = append(s.queries, query), append(s.args, args)
	if s.err != nil {
		return nil, s.err
	}
	if n := len(s.queries); n <= len(s.answers) {
		return answer(s.answers[n-1]), nil
	}
	return answer(len(s.queries)), nil
}

// box returns a Box of a configuration.
func box(t testing.TB, cfg outbox.Config) *outbox.Box {
	t.Helper()
	b, err := outbox.New(cfg)
	require.NoError(t, err)
	return b
}
