package rig

import (
	"database/sql"
	"testing"
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
