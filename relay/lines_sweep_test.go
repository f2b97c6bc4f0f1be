package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/test/bubble"
)

func TestHoldWaitsForWhatIsBeingDeferred(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		b.closeAndDrain(true)
		b.pass(t.Context(), 2)
		held := make(chan bool, 1)
		go func() { held <- b.Hold(t.Context(), "orders") }()
		synctest.Wait()
		b.pass(t.Context(), 2) // held, not deferred any more
		b.deferSettled(b.topic)
		synctest.Wait()
		require.Empty(t, held)
		b.deferSettled(b.topic)
		require.True(t, <-held)
		require.True(t, b.handBack(t))
		require.Equal(t, []string{"m1", "m2"}, ids(b.sink.left))
		require.Equal(t, []string{"m3", "m4"}, ids(b.sink.sent))
		require.Empty(t, b.Closed())
	})
}

func TestHoldGivenUpWithItsContext(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		b.closeAndDrain(true)
		b.pass(t.Context(), 1)
		ctx, cancel := context.WithTimeout(t.Context(), holdAtMost/2)
		defer cancel()
		held := make(chan bool, 1)
		go func() { held <- b.Hold(ctx, "orders") }()
		synctest.Wait()
		b.pass(t.Context(), 1)
		require.False(t, <-held)
		require.Equal(t, order.Draining, b.state())
		require.Equal(t, []string{"m1", "m2"}, ids(b.sink.left), "what was held is deferred behind the rest")
	})
}

func TestHoldOfATopicThatIsNotDraining(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		require.False(t, b.Hold(t.Context(), "orders"))
		b.Close("orders", "gone", 0)
		require.False(t, b.Hold(t.Context(), "orders"))
		require.False(t, b.handBack(t))
		b.Unhold("orders")
		require.Equal(t, order.Closed, b.state())
	})
}

func TestHoldingEndsByItself(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		b.closeAndDrain(true)
		require.True(t, b.Hold(t.Context(), "orders"))
		b.pass(t.Context(), 3)
		advance(t, holdAtMost-time.Nanosecond)
		require.Equal(t, order.Handing, b.state())
		advance(t, time.Nanosecond)
		require.Equal(t, order.Draining, b.state())
		require.Equal(t, []string{"m1", "m2", "m3"}, ids(b.sink.left))
		require.False(t, b.handBack(t), "the drain has to go on")
	})
}

// A deferring UPDATE that is never done, of a row that somebody has locked for long, does not keep the stream holding.
func TestHoldingEndsByItselfBeforeItHasBegun(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		b.closeAndDrain(true)
		b.pass(t.Context(), 1)
		held := make(chan bool, 1) // size 1: the goroutine ends by itself
		go func() { held <- b.Hold(t.Context(), "orders") }()
		synctest.Wait()
		b.pass(t.Context(), 3)
		require.Equal(t, order.Handing, b.state())
		advance(t, holdAtMost)
		require.False(t, <-held)
		require.Equal(t, order.Draining, b.state())
		require.Len(t, b.sink.left, 4)
	})
}

// advance lets the bubble's clock run.
func advance(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	synctest.Wait()
}

func TestUnholdDefersAndDrainsOn(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		b.closeAndDrain(true)
		require.True(t, b.Hold(t.Context(), "orders"))
		b.pass(t.Context(), 2)
		b.Unhold("orders")
		require.Equal(t, []string{"m1", "m2"}, ids(b.sink.left))
		_, drain, _ := b.Work(time.Now())
		require.Equal(t, []string{"orders"}, drain)
		b.settleDeferred()
		require.True(t, b.Hold(t.Context(), "orders"), "and can be handed back later")
	})
}

func TestRefusalWhileHandingBack(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		b.closeAndDrain(true)
		require.True(t, b.Hold(t.Context(), "orders"))
		b.pass(t.Context(), 1)
		b.Close("orders", "gone again", 0)
		require.Equal(t, []string{"m1"}, ids(b.sink.left))
		b.Unhold("orders")
		require.False(t, b.handBack(t))
		require.Equal(t, order.Closed, b.state())
	})
}

func TestHandBackOfATopicThatNeverAcked(t *testing.T) {
	t.Parallel()
	t.Run("FirstHeldIsTheProbe", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			b := newLinesBench()
			b.closeAndDrain(false)
			require.True(t, b.Hold(t.Context(), "orders"))
			b.pass(t.Context(), 3)
			require.True(t, b.handBack(t))
			require.Equal(t, []string{"m1"}, ids(b.sink.probed))
			require.Empty(t, b.sink.sent)
			b.ackProbe(t.Context())
			require.Equal(t, []string{"m2", "m3"}, ids(b.sink.sent))
		})
	})
	t.Run("NothingHeldIsFresh", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			b := newLinesBench()
			b.closeAndDrain(false)
			require.True(t, b.Hold(t.Context(), "orders"))
			require.True(t, b.handBack(t))
			require.Equal(t, order.Fresh, b.state())
			require.Empty(t, b.Closed())
		})
	})
}

// A topic that once acked, and was then closed again, is not known to take messages.
func TestCloseForgetsTheAck(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		b.pass(t.Context(), 1)
		b.ackProbe(t.Context())
		b.closeAndDrain(false)
		require.True(t, b.Hold(t.Context(), "orders"))
		b.pass(t.Context(), 1)
		require.True(t, b.handBack(t))
		require.Equal(t, []string{"m1", "m2"}, ids(b.sink.probed))
	})
}

func TestBeginProbe(t *testing.T) {
	t.Parallel()
	b := newLinesBench()
	probe, isOpen := b.BeginProbe("orders")
	require.True(t, probe)
	require.False(t, isOpen)
	probe, isOpen = b.BeginProbe("orders")
	require.False(t, probe || isOpen, "one at a time")
	b.pass(t.Context(), 2)
	b.ackProbe(t.Context())
	require.Equal(t, []string{"m1", "m2"}, ids(b.sink.sent))
	probe, isOpen = b.BeginProbe("orders")
	require.False(t, probe)
	require.True(t, isOpen)
	b.Close("orders", "gone", 0)
	probe, isOpen = b.BeginProbe("orders")
	require.False(t, probe || isOpen)
}

func TestWork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		arrange func(*linesBench)
		probe   []string
		drain   []string
		wait    time.Duration
	}{
		{name: "Fresh", arrange: func(*linesBench) {}},
		{name: "Due", arrange: func(b *linesBench) { b.Close("orders", "", 0) }, probe: []string{"orders"}},
		{name: "Paused", arrange: func(b *linesBench) { b.Close("orders", "", time.Hour) }, wait: time.Hour},
		{name: "Later", arrange: func(b *linesBench) {
			b.Close("orders", "", 0)
			b.ProbeLater("orders", time.Hour)
		}, wait: time.Hour},
		{name: "TheSoonerOfTwo", arrange: func(b *linesBench) {
			b.Close("orders", "", time.Hour)
			b.Close("other", "", time.Minute)
		}, wait: time.Minute},
		{name: "FailureNotWritten", arrange: func(b *linesBench) {
			b.willFail(b.topic)
			b.Close("orders", "", 0)
		}, wait: order.Settling},
		{name: "FailureWritten", arrange: func(b *linesBench) {
			b.willFail(b.topic)
			b.Close("orders", "", 0)
			b.failed(b.topic)
		}, probe: []string{"orders"}},
		{name: "Draining", arrange: func(b *linesBench) { b.closeAndDrain(true) }, drain: []string{"orders"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b := newLinesBench()
				tt.arrange(b)
				probe, drain, wait := b.Work(time.Now())
				require.Equal(t, tt.probe, probe)
				require.Equal(t, tt.drain, drain)
				require.Equal(t, tt.wait, wait)
			})
		})
	}
}

func TestRebuiltTopics(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		b.Rebuild([]string{"orders", "claimed"}, []string{"claimed"}, time.Now().Add(30*time.Second))
		b.pass(t.Context(), 1)
		require.Equal(t, []string{"m1"}, ids(b.sink.left), "what is new waits behind what is old")
		probe, _, wait := b.Work(time.Now())
		require.Empty(t, probe, "rows are not recorded yet")
		require.Equal(t, order.Settling, wait)
		b.Recorded()
		probe, _, wait = b.Work(time.Now())
		require.Equal(t, []string{"orders"}, probe)
		require.Equal(t, 30*time.Second, wait, "a dead process may hold the first rows until then")
		b.Drain("claimed", true)
		require.False(t, b.Hold(t.Context(), "claimed"))
		advance(t, 30*time.Second)
		require.True(t, b.Hold(t.Context(), "claimed"))
		b.Unhold("claimed")
	})
}
