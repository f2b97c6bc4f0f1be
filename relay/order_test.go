package relay_test

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

// Each test here is an interleaving in which a younger message of a key once passed an older one.

// A session fails while the rows from before its start are still being recorded: the next session has to record them.
func TestSessionThatFailedBeforeAllWasRecorded(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		old := w.commitOne("old", "k")
		recording, failed := false, false
		w.trouble.do(func(trouble *trouble) {
			trouble.fail = func(op operation, _ []outbox.Ref) error {
				if op == opUnrecorded && !recording {
					return store.ErrUnreachable
				}
				return nil
			}
			trouble.refuse = func(rec *router.Record) error {
				if rec.Topic == "new" && !failed {
					failed = true
					return sarama.ErrOutOfOrderSequenceNumber // nobody knows whether it is in Kafka
				}
				return nil
			}
		})
		p := start(t, w, 0)
		pause(t.Context(), time.Second)
		w.commitOne("new", "a") // the probe
		w.commitOne("new", "a")
		until(t, "an unknown outcome", func() (seen bool) {
			w.trouble.do(func(*trouble) { seen = failed })
			return seen
		})
		w.trouble.do(func(*trouble) { recording = true })
		young := w.commitOne("old", "k")
		w.settle(t, 2*time.Minute)
		require.NoError(t, p.stop())
		w.requireOrder(t, old, young)
	})
}

// One of the messages that were held is refused while the others are still being flushed: the flush must not open the
// topic.
func TestTopicRefusedDuringItsFlush(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.trouble.do(func(trouble *trouble) { trouble.sending = 5 * time.Millisecond })
		p := start(t, w, 0)
		pause(t.Context(), time.Second)
		w.commitOne("t", "a")
		var victim string
		refused := false
		w.trouble.do(func(trouble *trouble) {
			victim = w.commitOne("t", "x")
			trouble.refuse = func(rec *router.Record) error {
				if header(rec, "msg_id") == victim && !refused {
					refused = true
					return sarama.ErrTopicAuthorizationFailed
				}
				return nil
			}
		})
		for range 20 {
			w.commitOne("t", "y")
		}
		pause(t.Context(), 300*time.Millisecond) // the flush is over
		young := w.commitOne("t", "x")
		w.settle(t, 2*time.Minute)
		require.NoError(t, p.stop())
		require.True(t, refused)
		w.requireOrder(t, victim, young)
	})
}

// Somebody has locked the first row of a drain for a moment, so the claim leaves it out: those behind it have to wait.
func TestDrainWithALockedRow(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.setTopic("t", false, nil)
		var locked outbox.Ref
		w.trouble.do(func(trouble *trouble) {
			trouble.fail = func(op operation, refs []outbox.Ref) error {
				if op == opClaimEarly && len(refs) > 1 && locked.ID == 0 {
					locked = refs[0]
					trouble.locked = func(_ operation, ref outbox.Ref) bool { return ref == locked }
				} else if op == opClaimEarly {
					trouble.locked = nil
				}
				return nil
			}
		})
		p := start(t, w, 0)
		pause(t.Context(), time.Second)
		for range 20 {
			w.commitOne("t", "a")
		}
		pause(t.Context(), time.Second)
		w.setTopic("t", true, nil)
		w.settle(t, 10*time.Minute)
		require.NoError(t, p.stop())
		require.NotZero(t, locked.ID)
		w.verdict(t)
	})
}

// The answer to a claim is lost, or claimed rows can't be released: no query shows them while their claims last, and
// what is behind them has to wait.
func TestDrainWithHiddenRows(t *testing.T) {
	t.Parallel()
	for _, op := range []operation{opClaimEarly, opRelease} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) { drainWithHiddenRows(t, op) })
		})
	}
}

func drainWithHiddenRows(t *testing.T, hide operation) {
	w := newWorld(1)
	w.setTopic("t", false, nil)
	hidden, sent := 0, 0
	once := func(op operation, refs []outbox.Ref) error {
		if op != hide || hidden > 0 || op == opClaimEarly && len(refs) == 1 {
			return nil
		}
		hidden++
		return store.ErrUnreachable
	}
	w.trouble.do(func(trouble *trouble) {
		if hide == opClaimEarly {
			trouble.lose = once
			return
		}
		trouble.fail = once
		trouble.refuse = func(*router.Record) error { // so that there is something to release
			if sent++; sent <= 3 {
				return sarama.ErrTopicAuthorizationFailed
			}
			return nil
		}
	})
	p := start(t, w, 0)
	pause(t.Context(), time.Second)
	for range 4 {
		w.commitOne("t", "a")
	}
	pause(t.Context(), time.Second)
	w.setTopic("t", true, nil)
	for range 40 {
		w.commitOne("t", "b")
		pause(t.Context(), 100*time.Millisecond)
	}
	w.commitOne("t", "a")
	w.settle(t, 10*time.Minute)
	require.NoError(t, p.stop())
	require.Equal(t, 1, hidden)
	w.verdict(t)
}

// A row with a next_retry_time of its own is committed after the topics with rows left were read, and before the end
// of the replay window was: it looks deferred and is not.
func TestReplayOfARowWithItsOwnTime(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p := start(t, w, 0)
		pause(t.Context(), time.Second)
		w.commitOne("t", "k")
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		var old string
		w.trouble.do(func(trouble *trouble) {
			trouble.lose = func(op operation, _ []outbox.Ref) error {
				if op == opClosedTopics && old == "" {
					old = w.commitDelayed("t", "k", time.Now())
				}
				return nil
			}
		})
		w.commitOne("t", "j")
		p = start(t, w, 0)
		pause(t.Context(), 500*time.Millisecond)
		young := w.commitOne("t", "k")
		w.settle(t, 2*time.Minute)
		require.NoError(t, p.stop())
		w.requireOrder(t, old, young)
		require.Zero(t, w.verdict(t), "copies")
	})
}
