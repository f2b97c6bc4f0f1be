package harness

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/rig"
)

// Letter is a row written by hand. Table, Topic and Content have the scene's first table, its first topic and a small
// JSON object for default.
type Letter struct {
	ID, Table, Topic, Key, Content, Headers string
	Fate                                    oracle.Fate
	Due                                     time.Time
	// Unlogged says that the session which writes it does not log.
	Unlogged bool
}

// Execer is a pool, a session or a transaction.
type Execer interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
}

// Numbered returns n letters with ids of a prefix.
func Numbered(prefix string, n int) []Letter {
	letters := make([]Letter, n)
	for i := range letters {
		letters[i] = Letter{ID: fmt.Sprintf("%s-%04d", prefix, i), Key: "k"}
	}
	return letters
}

// Post commits letters, each in a transaction of its own, and enters them into the ledger.
func (s *Scene) Post(db Execer, letters ...Letter) {
	s.t.Helper()
	for i := range letters {
		sent := time.Now()
		s.Insert(db, letters[i])
		s.Enter(oracle.Committed, sent, letters[i])
	}
}

// PostTogether commits letters in one transaction and enters them.
func (s *Scene) PostTogether(letters ...Letter) {
	s.t.Helper()
	tx, err := s.DB.BeginTx(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range letters {
		s.Insert(tx, letters[i])
	}
	sent := time.Now()
	if err := tx.Commit(); err != nil {
		s.t.Fatal(err)
	}
	s.Enter(oracle.Committed, sent, letters...)
}

func (s *Scene) filled(l Letter) Letter {
	if l.Table == "" {
		l.Table = s.Tables[0]
	}
	if l.Topic == "" {
		l.Topic = s.Topics[0]
	}
	if l.Content == "" {
		l.Content = fmt.Sprintf(`{"id":%q}`, l.ID)
	}
	return l
}

// Insert writes a letter as a pending row and enters nothing.
func (s *Scene) Insert(db Execer, l Letter) {
	s.t.Helper()
	l = s.filled(l)
	var due, key, headers any
	if !l.Due.IsZero() {
		due = l.Due.Unix()
	}
	if l.Key != "" {
		key = l.Key
	}
	if l.Headers != "" {
		headers = l.Headers
	}
	s.Exec(db, "INSERT INTO "+l.Table+` (msg_id, topic, msg_content, status, next_retry_time, create_time, update_time, msg_key, headers)
		VALUES (?, ?, ?, 0, FROM_UNIXTIME(?), NOW(), NOW(), ?, ?)`, l.ID, l.Topic, l.Content, due, key, headers)
}

// Enter writes into the ledger what became of letters that were written in one transaction.
func (s *Scene) Enter(outcome oracle.Outcome, sent time.Time, letters ...Letter) {
	s.t.Helper()
	messages := make([]oracle.Message, len(letters))
	for i := range letters {
		l := s.filled(letters[i])
		messages[i] = oracle.Message{
			MsgID: l.ID, Table: l.Table, Topic: l.Topic, Key: l.Key, Content: oracle.HashOf([]byte(l.Content)),
			Fate: l.Fate, Due: l.Due.Truncate(time.Second), Unlogged: l.Unlogged,
		}
		if l.Key == "" {
			messages[i].Key = l.ID
		}
	}
	if err := s.Ledger.Add(oracle.Transaction{Messages: messages, Outcome: outcome, Sent: sent, Done: time.Now()}); err != nil {
		s.t.Fatal(err)
	}
}

// Exec runs a statement that must work.
func (s *Scene) Exec(db Execer, statement string, args ...any) {
	s.t.Helper()
	if _, err := db.ExecContext(s.t.Context(), statement, args...); err != nil {
		s.t.Fatalf("%.200s: %v", statement, err)
	}
}

// Session returns a connection of the administrator's own, for what belongs to a session.
func (s *Scene) Session(statements ...string) *sql.Conn {
	s.t.Helper()
	conn, err := s.DB.Conn(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // what was set in it must not come back to the pool
		_ = conn.Close()
	})
	for _, statement := range statements {
		s.Exec(conn, statement)
	}
	return conn
}

// Number asks for one number.
func (s *Scene) Number(query string, args ...any) int {
	s.t.Helper()
	var n sql.NullInt64
	if err := rig.Shown(func() error { return s.DB.QueryRowContext(s.t.Context(), query, args...).Scan(&n) }); err != nil {
		s.t.Fatalf("%.200s: %v", query, err)
	}
	return int(n.Int64)
}
