package store

import (
	"context"
	"database/sql/driver"
	"io"
	"strings"
	"testing"
	"time"

	gosql "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// oneRow is a server with one due row. The answer to its first COMMIT is lost, the commit itself is not.
type oneRow struct {
	updated, claimed bool
	commits          int
}

func (s *oneRow) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s *oneRow) Driver() driver.Driver                        { return nil }
func (s *oneRow) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (s *oneRow) Close() error                                 { return nil }
func (s *oneRow) Begin() (driver.Tx, error)                    { return s, nil }
func (s *oneRow) Rollback() error                              { return nil }

func (s *oneRow) Commit() error {
	s.commits++
	s.claimed = s.claimed || s.updated
	if s.commits == 1 {
		return gosql.ErrInvalidConn
	}
	return nil
}

func (s *oneRow) ExecContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	s.updated = s.updated || strings.HasPrefix(query, "UPDATE")
	return driver.RowsAffected(1), nil
}

func (s *oneRow) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &dueRow{read: s.claimed}, nil
}

type dueRow struct{ read bool }

func (r *dueRow) Columns() []string { return make([]string, len(rowColumns)) }
func (r *dueRow) Close() error      { return nil }

func (r *dueRow) Next(values []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	for i := range values {
		values[i] = []byte("1")
	}
	return nil
}

// Rows that are claimed without our knowing are hidden until the claim ends, so whoever claims has to know that they may be.
func TestClaimWhoseCommitIsNotAnswered(t *testing.T) {
	t.Parallel()
	server := &oneRow{}
	table := Table{Table: outbox.Table{Database: "app", Name: "m"}, cols: map[string]mysql.Column{}}
	for _, name := range rowColumns {
		table.cols[name] = mysql.Column{Name: name, Type: "varchar"}
	}
	s := &Store{cfg: Config{}.withDefaults(), work: mysql.PoolOf(server, 1), byName: map[outbox.Table]*Table{table.Table: &table}, server: mysql.NewServer("9.7.4", "", "0")}
	t.Cleanup(func() { require.NoError(t, s.work.Close()) })
	rows, err := s.ClaimEarly(t.Context(), []outbox.Ref{{Table: table.Table, ID: 1, MsgID: "1"}}, 30*time.Second)
	require.ErrorIs(t, err, ErrUnreachable)
	require.Empty(t, rows)
	require.Equal(t, 2, server.commits, "it was tried again, and nothing was due")
}
