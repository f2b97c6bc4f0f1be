//go:build !unit

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/harness"
)

// held puts a message that can't be sent (its content is empty) and, in later transactions, n followers of its key and one
// of another key into the first topic.
type held struct {
	*scene
	letter string
	n      int
}

func newHeld(t *testing.T, s *scene, n int) *held {
	t.Helper()
	h := &held{scene: s, letter: "letter", n: n}
	h.put(h.letter, "k", "")
	for i := range n {
		h.put(fmt.Sprintf("behind-%d", i), "k", "{}")
	}
	h.put("other", "o", "{}")
	return h
}

func (h *held) put(msgID, key, content string) {
	h.t.Helper()
	_, err := h.db.ExecContext(h.t.Context(), "INSERT INTO "+h.tables[0]+
		" (msg_id, msg_key, topic, msg_content, status, create_time, update_time) VALUES (?, ?, ?, ?, 0, NOW(), NOW())", msgID, key, h.topics[0], content)
	require.NoError(h.t, err)
}

// waits checks that the key waits and nothing else does.
func (h *held) waits() {
	h.t.Helper()
	harness.Eventually(h.t, 20*time.Second, "the key waits, the other flows", func() (bool, string) {
		var dead, parked, sent int
		err := h.db.QueryRowContext(h.t.Context(), "SELECT SUM(status = 4), SUM(status = 0 AND next_retry_time > '5000-01-01'), SUM(status = 1) FROM "+h.tables[0]).
			Scan(&dead, &parked, &sent)
		return err == nil && dead == 1 && parked == h.n && sent == 1, fmt.Sprint(dead, " dead ", parked, " parked ", sent, " sent ", err)
	})
	for _, r := range h.log.Records() {
		assert.Equal(h.t, "other", r.MsgID)
	}
}

// goesOn checks that all came in order, once each, the first of which is given.
func (h *held) goesOn(first string) {
	h.t.Helper()
	harness.WaitSettled(h.t, 20*time.Second, h.db, h.tables...)
	h.until(5*time.Second, func() bool { return h.log.Distinct() > h.n })
	var order []string
	for _, r := range h.log.Records() {
		if r.MsgID != "other" {
			order = append(order, r.MsgID)
		}
	}
	want := []string{}
	if first != "" {
		want = append(want, first)
	}
	for i := range h.n {
		want = append(want, fmt.Sprintf("behind-%d", i))
	}
	assert.Equal(h.t, want, order)
}

func holdScene(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, cast{topics: 1})
	s.settings = s.settings.With("router.after_dead", "hold", "sweep.interval", "1s")
	return s
}

// TestHoldReleasedByRetry: a dead letter holds its key, through a kill of the relay; mended and retried it goes first.
func TestHoldReleasedByRetry(t *testing.T) {
	s := holdScene(t)
	relay := s.start()
	h := newHeld(t, s, 600) // more than a batch of the sweeper
	h.waits()
	relay.Kill()
	relay = s.start()
	h.waits()
	harness.Eventually(t, 20*time.Second, "the metrics tell", func() (bool, string) {
		m, err := relay.Metrics()
		if err != nil {
			return false, err.Error()
		}
		return m.Sum("parked_messages") == 600 && m.Sum("parked_keys") == 1, fmt.Sprint(m.Sum("parked_messages"))
	})
	// The same as `messages retry`, by hand, of the mended row.
	_, err := s.db.ExecContext(t.Context(), "UPDATE "+s.tables[0]+" SET msg_content = '{}', status = 2, next_retry_time = NOW() WHERE msg_id = 'letter'")
	require.NoError(t, err)
	h.goesOn("letter")
	h.put("later", "k", "{}")
	harness.WaitSettled(t, 10*time.Second, s.db, s.tables...)
	s.caughtUp(12 * time.Second)
}

// TestHoldReleasedByDiscard: a discarded letter lets its key go on.
func TestHoldReleasedByDiscard(t *testing.T) {
	s := holdScene(t)
	s.start()
	h := newHeld(t, s, 20)
	h.waits()
	shown := harness.Command(t, s.settings, "messages", "show", "behind-3")
	assert.Contains(t, shown.Stdout, "The dead letter has id 1. Let its key go on: outbox-relay messages retry 1 --yes")
	_, err := s.db.ExecContext(t.Context(), "UPDATE "+s.tables[0]+" SET status = 5 WHERE msg_id = 'letter'")
	require.NoError(t, err)
	h.goesOn("")
}

// TestReleaseAfterDead: without hold a dead letter lets its key go on.
func TestReleaseAfterDead(t *testing.T) {
	s := newScene(t, cast{topics: 1})
	s.start()
	h := newHeld(t, s, 20)
	h.goesOn("")
}
