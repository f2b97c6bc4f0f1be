//go:build !unit

package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/harness"
)

// putRow inserts a pending row that is exactly so.
func putRow(s *harness.Scene, msgID, key, topic, content string) {
	s.Exec(s.DB, "INSERT INTO "+s.Tables[0]+" (msg_id, msg_key, topic, msg_content, status, create_time, update_time) VALUES (?, ?, ?, ?, 0, NOW(), NOW())",
		msgID, key, topic, content)
}

// TestBadInput: what can't be sent ends dead with a reason, at once, and holds up nobody, not even its own key.
func TestBadInput(t *testing.T) {
	s := harness.NewScene(t, harness.Cast{Topics: 1, Patient: true})
	relay := s.Start()
	bad := []harness.Letter{
		{ID: "topic-with-a-space", Topic: "no such topic"},
		{ID: "topic-dots", Topic: ".."},
		{ID: "topic-of-kafka", Topic: "__consumer_offsets"},
		{ID: "topic-unicode", Topic: "заказы"},
		{ID: "headers-an-array", Headers: `["a"]`},
		{ID: "headers-no-json", Headers: `{"a": `},
		{ID: "headers-a-number", Headers: `7`},
		{ID: "content-too-large", Content: strings.Repeat("x", 2<<20)},
		{ID: "topic-empty"},
		{ID: "content-empty"},
	}
	for i, l := range bad {
		s.Post(s.DB, harness.Letter{ID: fmt.Sprintf("good-%d", i), Key: "k", Content: fmt.Sprintf(`{"n":%d}`, i)})
		l.Key, l.Fate = "k", oracle.Die
		switch l.ID { // these two have what a letter is not given
		case "topic-empty":
			putRow(s, l.ID, l.Key, "", "{}")
			s.Enter(oracle.Committed, time.Now(), l)
		case "content-empty":
			putRow(s, l.ID, l.Key, s.Topics[0], "")
			s.Enter(oracle.Committed, time.Now(), l)
		default:
			s.Post(s.DB, l)
		}
	}
	for i, content := range []string{"no json", `{"cut`, "\x00\x01", "[]", `"日本語 😀"`, " ", strings.Repeat("y", 1000<<10)} {
		s.Post(s.DB, harness.Letter{ID: fmt.Sprintf("odd-%d", i), Key: "k", Content: content})
	}
	v := s.Exact(20*time.Second, oracle.Options{})
	assert.Equal(t, len(bad), v.Dead)
	rows, err := workload.Rows(t.Context(), s.DB, s.Tables...)
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
	s.CaughtUp(12 * time.Second)
}

// TestDelayedMessages: they go out at their time, to the second, by default settings.
func TestDelayedMessages(t *testing.T) {
	s := harness.NewScene(t, harness.Cast{Patient: true})
	s.Start()
	now := time.Now().Truncate(time.Second)
	for i := range 40 {
		l := harness.Letter{ID: fmt.Sprintf("m-%d", i), Topic: s.Topics[i%2]}
		if i%4 != 0 {
			l.Due = now.Add(time.Duration(3+i%7) * time.Second)
		}
		s.Post(s.DB, l)
	}
	v := s.Exact(20*time.Second, oracle.Options{})
	assert.Equal(t, 30, v.Swept)
}

// TestSweepMode works without any binlog.
func TestSweepMode(t *testing.T) {
	s := harness.NewScene(t, harness.Cast{Tables: 2, Patient: true})
	s.Set("source.mode", "sweep", "sweep.interval", "1s", "sweep.grace", "1s")
	relay := s.Start()
	s.Write(func(cfg *workload.Config) { cfg.Rows = 2000 })
	v := s.Exact(60*time.Second, oracle.Options{})
	assert.Equal(t, 2000, v.Swept)
	code, _ := relay.Stop()
	assert.Zero(t, code)
}
