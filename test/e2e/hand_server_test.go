//go:build !unit

package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/outbox"
)

// letter is a row written by hand.
type letter struct {
	id, topic, key, content, headers string
	fate                             oracle.Fate
	due                              time.Time
	unlogged                         bool
}

type execer interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
}

// post commits a letter alone and enters it into the ledger.
func (s *scene) post(db execer, l letter) {
	s.t.Helper()
	nullable := func(v string) any {
		if v == "" {
			return nil
		}
		return v
	}
	var due any
	if !l.due.IsZero() {
		due = l.due.Unix()
	}
	message := oracle.Message{
		MsgID: l.id, Table: s.tables[0], Topic: l.topic, Key: l.key, Content: oracle.HashOf([]byte(l.content)),
		Fate: l.fate, Due: l.due, Unlogged: l.unlogged,
	}
	if l.key == "" {
		message.Key = l.id
	}
	sent := time.Now()
	_, err := db.ExecContext(s.t.Context(), "INSERT INTO "+s.tables[0]+` (msg_id, topic, msg_content, status, next_retry_time, create_time,
		update_time, msg_key, headers) VALUES (?, ?, ?, 0, FROM_UNIXTIME(?), NOW(), NOW(), ?, ?)`,
		l.id, l.topic, l.content, due, nullable(l.key), nullable(l.headers))
	require.NoError(s.t, err)
	require.NoError(s.t, s.ledger.Add(oracle.Transaction{
		Messages: []oracle.Message{message}, Outcome: oracle.Committed, Sent: sent, Done: time.Now(),
	}))
}

// TestBadInput: what can't be sent ends dead with a reason, at once, and holds up nobody, not even its own key.
func TestBadInput(t *testing.T) {
	s := newScene(t, cast{topics: 1})
	relay := s.start()
	topic := s.topics[0]
	bad := []letter{
		{id: "topic-with-a-space", topic: "no such topic"},
		{id: "topic-empty", topic: ""},
		{id: "topic-dots", topic: ".."},
		{id: "topic-of-kafka", topic: "__consumer_offsets"},
		{id: "topic-unicode", topic: "заказы"},
		{id: "headers-an-array", topic: topic, headers: `["a"]`},
		{id: "headers-no-json", topic: topic, headers: `{"a": `},
		{id: "headers-a-number", topic: topic, headers: `7`},
		{id: "content-empty", topic: topic, content: "-"},
		{id: "content-too-large", topic: topic, content: strings.Repeat("x", 2<<20)},
	}
	for i, l := range bad {
		s.post(s.db, letter{id: fmt.Sprintf("good-%d", i), topic: topic, key: "k", content: fmt.Sprintf(`{"n":%d}`, i)})
		l.key, l.fate = "k", oracle.Die
		switch l.content {
		case "":
			l.content = "{}"
		case "-":
			l.content = ""
		}
		s.post(s.db, l)
	}
	for i, content := range []string{"no json", `{"cut`, "\x00\x01", "[]", `"日本語 😀"`, " ", strings.Repeat("y", 1000<<10)} {
		s.post(s.db, letter{id: fmt.Sprintf("odd-%d", i), topic: topic, key: "k", content: content})
	}
	v := s.exact(20*time.Second, oracle.Options{})
	assert.Equal(t, len(bad), v.Dead)
	rows, err := workload.Rows(t.Context(), s.db, s.tables...)
	require.NoError(t, err)
	for _, row := range rows {
		if row.Status == outbox.Dead {
			assert.NotEmpty(t, row.LastError, row.MsgID)
			t.Logf("%s: %s", row.MsgID, row.LastError)
		}
	}
	m, err := relay.Metrics()
	require.NoError(t, err)
	assert.InDelta(t, len(bad), m.Sum("messages_dead_total"), 0)
	s.caughtUp(12 * time.Second)
}

// TestDelayedMessages: they go out at their time, to the second, by default settings.
func TestDelayedMessages(t *testing.T) {
	s := newScene(t, cast{})
	s.start()
	now := time.Now().Truncate(time.Second)
	for i := range 40 {
		l := letter{id: fmt.Sprintf("m-%d", i), topic: s.topics[i%2], content: fmt.Sprintf(`{"n":%d}`, i)}
		if i%4 != 0 {
			l.due = now.Add(time.Duration(3+i%7) * time.Second)
		}
		s.post(s.db, l)
	}
	v := s.exact(20*time.Second, oracle.Options{})
	assert.Equal(t, 30, v.Swept)
}

// TestSweepMode works without any binlog.
func TestSweepMode(t *testing.T) {
	s := newScene(t, cast{tables: 2})
	s.settings = s.settings.With("source.mode", "sweep", "sweep.interval", "1s", "sweep.grace", "1s")
	relay := s.start()
	s.write(func(cfg *workload.Config) { cfg.Rows = 2000 })
	v := s.exact(60*time.Second, oracle.Options{})
	assert.Equal(t, 2000, v.Swept)
	code, _ := relay.Stop()
	assert.Zero(t, code)
}

// TestNotBinlogged: rows that no binlog ever told of are found by the sweeper.
func TestNotBinlogged(t *testing.T) {
	s := newScene(t, cast{})
	s.settings = s.settings.With("sweep.interval", "2s", "sweep.grace", "1s")
	relay := s.start()
	s.caughtUp(12 * time.Second) // what is pending at a start is nobody's fault
	conn, err := s.db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.ExecContext(t.Context(), "SET SESSION sql_log_bin = 0")
	require.NoError(t, err)
	for i := range 20 {
		s.post(conn, letter{id: fmt.Sprintf("silent-%d", i), topic: s.topics[0], content: "{}", unlogged: true})
		s.post(s.db, letter{id: fmt.Sprintf("told-%d", i), topic: s.topics[0], content: "{}"})
	}
	_, err = conn.ExecContext(t.Context(), "SET SESSION sql_log_bin = 1")
	require.NoError(t, err)
	v := s.exact(20*time.Second, oracle.Options{})
	assert.Equal(t, 20, v.Swept)
	m, err := relay.Metrics()
	require.NoError(t, err)
	assert.InDelta(t, 20, m.Sum("stream_missed_total", "reason", "unexplained"), 0)
}
