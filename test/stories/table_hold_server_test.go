//go:build !unit

package stories

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
	*harness.Scene
	t *testing.T
	n int
}

func newHeld(t *testing.T, s *harness.Scene, n int) *held {
	t.Helper()
	h := &held{Scene: s, t: t, n: n}
	h.put("letter", "k", "")
	for i := range n {
		h.put(fmt.Sprintf("behind-%d", i), "k", "{}")
	}
	h.put("other", "o", "{}")
	return h
}

func (h *held) put(msgID, key, content string) {
	h.t.Helper()
	putRow(h.Scene, msgID, key, h.Topics[0], content)
}

// waits checks that the key waits and nothing else does.
func (h *held) waits() {
	h.t.Helper()
	harness.Eventually(h.t, 20*time.Second, "the key waits, the other flows", func() (bool, string) {
		var dead, parked, sent int
		err := h.DB.QueryRowContext(h.t.Context(), "SELECT SUM(status = 4), SUM(status = 0 AND next_retry_time > '5000-01-01'), SUM(status = 1) FROM "+h.Tables[0]).
			Scan(&dead, &parked, &sent)
		return err == nil && dead == 1 && parked == h.n && sent == 1, fmt.Sprint(dead, " dead ", parked, " parked ", sent, " sent ", err)
	})
	for _, r := range h.Log.Records() {
		assert.Equal(h.t, "other", r.MsgID)
	}
}

// goesOn checks that all came in order, once each, the first of which is given.
func (h *held) goesOn(first string) {
	h.t.Helper()
	harness.WaitSettled(h.t, 20*time.Second, h.DB, h.Tables...)
	harness.Patiently(5*time.Second, func() bool { return h.Log.Distinct() > h.n })
	var order []string
	for _, r := range h.Log.Records() {
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

func holdScene(t *testing.T) *harness.Scene {
	t.Helper()
	s := harness.NewScene(t, harness.Cast{Topics: 1, Patient: true})
	s.Set("router.after_dead", "hold", "sweep.interval", "1s")
	return s
}

// TestHoldReleasedByRetry: a dead letter holds its key, through a kill of the relay; mended and retried it goes first.
func TestHoldReleasedByRetry(t *testing.T) {
	s := holdScene(t)
	relay := s.Start()
	h := newHeld(t, s, 600) // more than a batch of the sweeper
	h.waits()
	relay.Kill()
	relay = s.Start()
	h.waits()
	harness.Eventually(t, 20*time.Second, "the metrics tell", func() (bool, string) {
		m, err := relay.Metrics()
		if err != nil {
			return false, err.Error()
		}
		return m.Sum("parked_messages") == 600 && m.Sum("parked_keys") == 1, fmt.Sprint(m.Sum("parked_messages"))
	})
	// The same as `messages retry`, by hand, of the mended row.
	_, err := s.DB.ExecContext(t.Context(), "UPDATE "+s.Tables[0]+" SET msg_content = '{}', status = 2, next_retry_time = NOW() WHERE msg_id = 'letter'")
	require.NoError(t, err)
	h.goesOn("letter")
	h.put("later", "k", "{}")
	harness.WaitSettled(t, 10*time.Second, s.DB, s.Tables...)
	s.CaughtUp(12 * time.Second)
}

// TestHoldReleasedByDiscard: a discarded letter lets its key go on.
func TestHoldReleasedByDiscard(t *testing.T) {
	s := holdScene(t)
	s.Start()
	h := newHeld(t, s, 20)
	h.waits()
	shown := harness.Command(t, s.Settings, "messages", "show", "behind-3")
	assert.Contains(t, shown.Stdout, "The dead letter has id 1. Let its key go on: outbox-relay messages retry 1 --yes")
	_, err := s.DB.ExecContext(t.Context(), "UPDATE "+s.Tables[0]+" SET status = 5 WHERE msg_id = 'letter'")
	require.NoError(t, err)
	h.goesOn("")
}

// TestReleaseAfterDead: without hold a dead letter lets its key go on.
func TestReleaseAfterDead(t *testing.T) {
	s := harness.NewScene(t, harness.Cast{Topics: 1, Patient: true})
	s.Start()
	h := newHeld(t, s, 20)
	h.goesOn("")
}
