package rig

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Session is one connection of a server.
type Session struct {
	ID        int
	User      string
	Host      string // with its port
	Database  string
	Command   string // such as Query, Sleep, Binlog Dump
	State     string
	Statement string // "" when none runs
}

// Sessions returns the connections of a server. They are not read from information_schema.processlist, which MySQL
// refuses to read while any session runs a statement with characters beyond the BMP (error 3854).
func Sessions(t testing.TB, db *sql.DB) []Session {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SHOW FULL PROCESSLIST")
	if err != nil {
		t.Fatalf("list the sessions: %v", err)
	}
	defer rows.Close() //nolint:errcheck // only read
	columns, err := rows.Columns()
	if err != nil {
		t.Fatalf("list the sessions: %v", err)
	}
	var sessions []Session
	for rows.Next() {
		var s Session
		var database, command, state, statement sql.NullString
		into := []any{&s.ID, &s.User, &s.Host, &database, &command, new(sql.RawBytes), &state, &statement}
		for len(into) < len(columns) { // MariaDB has its progress behind them
			into = append(into, new(sql.RawBytes))
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatalf("list the sessions: %v", err)
		}
		s.Database, s.Command, s.State, s.Statement = database.String, command.String, state.String, statement.String
		sessions = append(sessions, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("list the sessions: %v", err)
	}
	return sessions
}

// transactionsEvery is how often a server is asked again about its transactions: it gives the same answer within 0.1 s.
const transactionsEvery = 120 * time.Millisecond

// errUnprintable is MySQL's refusal to list transactions or sessions while one runs a statement with characters beyond
// the BMP.
const errUnprintable = 3854

// Transactions counts the open transactions of a server for which a condition on information_schema.innodb_trx holds. It
// asks again, for a while, when MySQL refuses to list them because of what another one's statement says.
func Transactions(t testing.TB, db *sql.DB, condition string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	tick := time.NewTicker(transactionsEvery)
	defer tick.Stop()
	for {
		var n int
		err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE "+condition).Scan(&n)
		if err == nil {
			return n
		}
		if refused, ok := errors.AsType[*mysql.MySQLError](err); !ok || refused.Number != errUnprintable {
			t.Fatalf("count the transactions where %s: %v", condition, err)
		}
		<-tick.C
	}
}
