package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/bubble"
)

// A topic that is closed while its held messages are being flushed stays closed, and the rest of them is deferred.
func TestTopicClosedDuringItsFlush(t *testing.T) {
	t.Parallel()
	b := newLinesBench()
	b.pass(t.Context(), 4)
	b.sink.onSend = func(it *item) {
		if it.ref.MsgID == "m2" {
			b.close(b.topic, "no right to it", time.Time{})
		}
	}
	b.ackProbe(t.Context())
	require.Equal(t, order.Closed, b.state())
	b.pass(t.Context(), 1)
	require.Equal(t, []string{"m2"}, ids(b.sink.sent))
	require.Equal(t, []string{"m3", "m4", "m5"}, ids(b.sink.left))
}

// The topic is closed while a hold waits for a deferring UPDATE: the hold has ended and must not wait on.
func TestHoldGivesUpWhenItsTopicIsClosed(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		b.closeAndDrain(true)
		b.pass(t.Context(), 1) // being deferred
		held := make(chan bool, 1)
		go func() { held <- b.Hold(t.Context(), "orders") }()
		synctest.Wait()
		require.Empty(t, held)
		b.Close("orders", "gone again", 0)
		synctest.Wait()
		require.Len(t, held, 1, "it waits for an UPDATE that is no longer of interest")
		require.False(t, <-held)
	})
}

// The timer of an earlier hold goes off during a later one, which has a full time of its own.
func TestTimerOfAnEarlierHold(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		b.closeAndDrain(true)
		require.True(t, b.Hold(t.Context(), "orders"))
		advance(t, holdAtMost/2)
		b.Unhold("orders")
		require.True(t, b.Hold(t.Context(), "orders"))
		advance(t, holdAtMost-1)
		require.Equal(t, order.Handing, b.state())
		advance(t, 1)
		require.Equal(t, order.Draining, b.state())
	})
}

// What is held looks deferred in the table when it was written with a next_retry_time: the sweeper leaves it to the
// stream.
func TestHeldAreTheStreamsOwn(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		require.Empty(t, b.Held("orders"))
		b.closeAndDrain(true)
		b.pass(t.Context(), 1) // deferred
		b.settleDeferred()
		require.True(t, b.Hold(t.Context(), "orders"))
		b.pass(t.Context(), 2)
		second, third := rowOf(2, "orders", "k"), rowOf(3, "orders", "k")
		require.Equal(t, map[outbox.Ref]bool{second.Ref(): true, third.Ref(): true}, b.Held("orders"))
		require.Empty(t, b.Held("other"))
		b.Unhold("orders")
		require.Empty(t, b.Held("orders"), "they are the sweeper's now")
	})
}

// A probe that could not be sent is older than what is held: it is deferred first.
func TestProbeIsDeferredBeforeWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := newLinesBench()
	b.pass(t.Context(), 3)
	b.closeWith(b.topic, b.sink.probed[0], "no leader", time.Time{})
	require.Equal(t, []string{"m1", "m2", "m3"}, ids(b.sink.left))
	require.Equal(t, order.Closed, b.state())
}

// The sweeper sleeps until a time that did not know of the topic.
func TestClosingWakesTheSweeperOnce(t *testing.T) {
	t.Parallel()
	b := newLinesBench()
	b.close(b.topic, "gone", time.Time{})
	b.close(b.topic, "still gone", time.Time{})
	require.Equal(t, 1, b.woken)
}

// A stop while Redis or the database is away, before anything was begun, is a clean stop.
func TestRunStoppedBeforeItBegan(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]time.Duration{"Redis": time.Hour, "Database": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				r := New(Config{Source: "test"}, Deps{
					Checkpoints: &loading{until: time.Now().Add(away)}, Lock: freeLock{}, Tables: tables(&surveyRows{}), Metrics: newMetrics(),
					OpenReader: func(ctx context.Context) (Reader, error) { <-ctx.Done(); return nil, ctx.Err() },
				}, zerolog.Nop())
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.NoError(t, r.Run(ctx))
			})
		})
	}
}

// freeLock is a lock that nobody else wants.
type freeLock struct{}

func (freeLock) Acquire(context.Context) (Held, error) { return heldLock{}, nil }

type heldLock struct{}

func (heldLock) Lost() <-chan struct{}         { return nil }
func (heldLock) Valid() bool                   { return true }
func (heldLock) Release(context.Context) error { return nil }
