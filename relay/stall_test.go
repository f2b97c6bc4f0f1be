package relay

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/bubble"
)

func TestOldestUnanswered(t *testing.T) {
	t.Parallel()
	var u unanswered
	require.Nil(t, u.oldest())
	a, b, c := u.add("a"), u.add("b"), u.add("c")
	require.Same(t, a, u.oldest())
	b.answered.Store(true)
	require.Same(t, a, u.oldest(), "answers may come in any order")
	a.answered.Store(true)
	require.Same(t, c, u.oldest())
	c.answered.Store(true)
	require.Nil(t, u.oldest())
	require.Empty(t, u.list)
}

// Nobody may ask for the oldest in a long while: what is answered is forgotten all the same.
func TestAnsweredRecordsAreForgotten(t *testing.T) {
	t.Parallel()
	var u unanswered
	kept := u.add("kept")
	for range 10 * pruneFrom {
		u.add("orders").answered.Store(true)
	}
	require.LessOrEqual(t, len(u.list), 2*pruneFrom)
	require.Same(t, kept, u.oldest())
}

// A list that is long because nothing is answered is not gone through at each record.
func TestForgettingIsPutOffWhileNothingIsAnswered(t *testing.T) {
	t.Parallel()
	var u unanswered
	for range 2*pruneFrom - 1 {
		u.add("orders")
	}
	require.Equal(t, 2*pruneFrom, u.prune)
	require.Len(t, u.list, 2*pruneFrom-1)
}

// stallBench is a session whose records get no answers, and which watches them.
type stallBench struct {
	*flowBench
	session *session
}

func startStallBench(ctx context.Context) *stallBench {
	b := &stallBench{flowBench: newFlowBench()}
	b.session = &session{flow: b.flow, fail: b.fail}
	go b.session.watchStalls(ctx)
	return b
}

// stallsAfter checks that the session fails because of topic when d has gone by, and not a second before.
func (b *stallBench) stallsAfter(t *testing.T, d time.Duration, topic string) {
	t.Helper()
	advance(t, d-time.Second)
	require.Empty(t, b.failed)
	advance(t, time.Second)
	require.Len(t, b.failed, 1)
	var stalled *errStalled
	require.ErrorAs(t, <-b.failed, &stalled)
	require.Equal(t, topic, stalled.topic)
	require.ErrorContains(t, stalled, topic)
}

// lookFirst is the look at which a record is seen for the first time.
const lookFirst = time.Second

func TestRecordWithoutAnAnswerEndsTheSession(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := startStallBench(t.Context())
		b.unanswered.add("stuck")
		b.stallsAfter(t, lookFirst+stalledAfter, "stuck")
	})
}

func TestRecordsThatAreAnsweredDoNotStall(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := startStallBench(t.Context())
		for range 10 {
			w := b.unanswered.add("slow")
			advance(t, stalledAfter-time.Second)
			w.answered.Store(true)
		}
		require.Empty(t, b.failed)
		b.unanswered.add("stuck")
		b.stallsAfter(t, lookFirst+stalledAfter, "stuck")
	})
}

// While the brokers are away nobody answers, and after that the records are old.
func TestOutageIsNoStall(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := startStallBench(t.Context())
		b.unanswered.add("stuck")
		advance(t, stalledAfter)
		b.broker.set(func() { b.broker.away = errBroken })
		advance(t, time.Hour)
		require.Empty(t, b.failed)
		b.broker.set(func() { b.broker.away = nil })
		b.stallsAfter(t, stalledAfter, "stuck")
	})
}

// Records that fill more than half of the window keep the others from being sent.
func TestStallThatFillsTheWindowEndsTheSessionSoon(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(*window) bool{
		"Rows":  func(w *window) bool { ok, _ := w.tryAcquire(0); return ok && w.rows <= w.maxRows/2 },
		"Bytes": func(w *window) bool { ok, _ := w.tryAcquire(w.maxBytes/2 + 1); return ok && w.bytes == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b := startStallBench(t.Context())
				for fill(b.inFlight) {
				}
				b.unanswered.add("stuck")
				b.stallsAfter(t, lookFirst+stalledSoon, "stuck")
			})
		})
	}
}
