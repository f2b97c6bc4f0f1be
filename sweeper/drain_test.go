package sweeper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/sweeper"
	"example.com/outbox-relay/test/bubble"
)

// closedBench has a closed topic with one failed row and pending ones behind it.
func closedBench(t *testing.T, pending ...uint64) *bench {
	t.Helper()
	b := newBench(t)
	b.gate.states["orders"] = "closed"
	b.table.put("orders", outbox.Failed, 1)
	b.table.put("orders", outbox.Pending, pending...)
	return b
}

func TestProbeIsTheOldestRowAlone(t *testing.T) {
	t.Parallel()
	b := closedBench(t, 2, 3)
	require.Equal(t, sweeper.Result{Sent: 1, More: true}, b.pass(t))
	require.Equal(t, []string{"~m1"}, b.broker.published())
	require.Equal(t, []string{"claim m1", "sent m1"}, b.table.done())
	require.Equal(t, []string{"drain orders"}, b.gate.done())
}

func TestProbeRefusedSpendsOnlyItsOwnRetry(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := closedBench(t, 2, 3)
		b.broker.refuse = refuse(errRefused, "m1")
		require.Equal(t, sweeper.Result{Failed: 1}, b.pass(t))
		require.Equal(t, []string{"claim m1", "failed m1"}, b.table.done())
		require.Equal(t, "closed", b.gate.state("orders"))
		b.broker.refuse = nil
		b.pass(t)
		require.Empty(t, b.broker.published(), "its next_retry_time says when")
		wait(t, 10*time.Second)
		require.Equal(t, 1, b.pass(t).Sent)
		require.Equal(t, []string{"~m1"}, b.broker.published())
	})
}

// wait lets the bubble's clock run.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	synctest.Wait()
}

func TestProbeUnreachableSpendsNothing(t *testing.T) {
	t.Parallel()
	b := closedBench(t, 2)
	b.broker.refuse = refuse(errUnreachable, "m1")
	require.Equal(t, sweeper.Result{}, b.pass(t))
	require.Equal(t, []string{"claim m1", "release m1"}, b.table.done())
}

func TestProbeDeadTriesTheNextAtOnce(t *testing.T) {
	t.Parallel()
	b := closedBench(t, 2)
	b.broker.refuse = refuse(errNever, "m1")
	require.Equal(t, sweeper.Result{Dead: 1, More: true}, b.pass(t))
	require.Equal(t, 1, b.pass(t).Sent)
	require.Equal(t, []string{"~m2"}, b.broker.published())
}

// A topic that has come into being need not wait for the row's next_retry_time.
func TestTopicThatAppearsIsProbedEarly(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := closedBench(t, 2)
		b.table.rows[1].next = time.Now().Add(time.Hour)
		require.Equal(t, sweeper.Result{}, b.pass(t))
		require.Empty(t, b.broker.published())
		b.broker.appeared = true
		wait(t, time.Second)
		require.Equal(t, 1, b.pass(t).Sent)
		require.Equal(t, []string{"~m1"}, b.broker.published(), "the failed row first, though another is due")
	})
}

func TestClosedTopicWithoutRowsGoesBackToTheStream(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["orders"] = "closed"
	require.Equal(t, sweeper.Result{More: true}, b.pass(t))
	b.pass(t)
	require.Equal(t, []string{"drain unacked orders", "hold orders", "hand back orders"}, b.gate.done())
}

func TestProbeThatSomebodyElseHolds(t *testing.T) {
	t.Parallel()
	b := closedBench(t)
	b.table.locked[1] = true
	require.Equal(t, sweeper.Result{}, b.pass(t))
	require.Equal(t, "closed", b.gate.state("orders"))
	require.Empty(t, b.broker.published())
}

// drainingBench has a topic that drains, with rows.
func drainingBench(t *testing.T, ids ...uint64) *bench {
	t.Helper()
	b := newBench(t)
	b.gate.states["orders"] = "draining"
	b.table.put("orders", outbox.Pending, ids...)
	return b
}

func TestDrainSendsByIDAndHandsBackTheRest(t *testing.T) {
	t.Parallel()
	b := drainingBench(t, 8, 2, 3, 4, 5, 6, 7)
	b.table.put("orders", outbox.Failed, 1)
	b.table.rows[1].next = time.Now().Add(time.Hour) // not due, and still the first
	require.Equal(t, sweeper.Result{Sent: 8, More: true}, b.pass(t))
	require.Equal(t, []string{"m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"}, b.broker.published())
	require.Empty(t, b.gate.done(), "much is drained while the stream defers")
	b.table.put("orders", outbox.Pending, 9) // deferred meanwhile
	require.Equal(t, sweeper.Result{Sent: 1}, b.pass(t))
	require.Equal(t, []string{"hold orders", "hand back orders"}, b.gate.done())
	require.Equal(t, "open", b.gate.state("orders"))
}

func TestDrainLeavesTheStreamItsOwnRows(t *testing.T) {
	t.Parallel()
	b := drainingBench(t, 1, 2)
	b.table.rows[2].next = time.Time{} // nobody has deferred it
	b.pass(t)
	require.Equal(t, "claim m1", b.table.done()[0])
}

func TestDrainStopsAtARefusal(t *testing.T) {
	t.Parallel()
	b := drainingBench(t, 1, 2, 3, 4, 5, 6, 7)
	b.broker.refuse = refuse(errRefused, "m5", "m6")
	require.Equal(t, sweeper.Result{Sent: 4, Failed: 1}, b.pass(t))
	require.Equal(t, []string{"m1", "m2", "m3", "m4"}, b.broker.published())
	require.Equal(t, outbox.Failed, b.table.status(5))
	require.Equal(t, outbox.Pending, b.table.status(6))
	require.Equal(t, "closed", b.gate.state("orders"))
}

func TestDrainIsNotAskedToWaitForWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := drainingBench(t)
	b.stream.err = sweeper.ErrBehind
	_, err := b.Pass(t.Context())
	require.NoError(t, err, "Passed would wait for the held messages, and they for the hand-back")
	require.Equal(t, "open", b.gate.state("orders"))
}

func TestLongDrainWaitsForTheStream(t *testing.T) {
	t.Parallel()
	b := drainingBench(t, 1, 2, 3, 4)
	b.stream.err = sweeper.ErrBehind
	_, err := b.Pass(t.Context())
	require.ErrorIs(t, err, sweeper.ErrBehind)
	require.Empty(t, b.broker.published())
}

func TestHandBackTooEarly(t *testing.T) {
	t.Parallel()
	b := drainingBench(t, 1)
	b.gate.early = true
	require.Equal(t, sweeper.Result{Sent: 1}, b.pass(t))
	require.Equal(t, "draining", b.gate.state("orders"))
}

func TestHandBackRefused(t *testing.T) {
	t.Parallel()
	b := drainingBench(t, 1, 2)
	b.broker.refuse = refuse(errUnreachable, "m2")
	require.Equal(t, sweeper.Result{Sent: 1}, b.pass(t))
	require.NotContains(t, b.gate.done(), "hand back orders")
	require.Equal(t, outbox.Pending, b.table.status(2))
}

// What was published and could not be marked is claimed, so no query shows it: nothing younger may pass.
func TestHandBackThatCouldNotWrite(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := drainingBench(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		b.broker.refuse = func(string) error { b.table.setFail(errClosed); time.AfterFunc(time.Second, cancel); return nil }
		_, err := b.Pass(ctx)
		require.ErrorIs(t, err, errClosed)
		require.NotContains(t, b.gate.done(), "hand back orders")
		require.NotEqual(t, "handing", b.gate.state("orders"), "the stream must not hold for ever")
	})
}

func TestStreamThatHadToGiveUpHolding(t *testing.T) {
	t.Parallel()
	b := drainingBench(t)
	b.gate.full = 1
	require.True(t, b.pass(t).More, "the drain goes on at once")
	b.pass(t)
	require.Equal(t, []string{"hold orders", "give up orders", "hold orders", "hand back orders"}, b.gate.done())
}

func TestDrainSuppressesWhatIsInKafka(t *testing.T) {
	t.Parallel()
	b := drainingBench(t, 1, 2)
	b.broker.tail["orders/m1"] = true
	require.Equal(t, 2, b.pass(t).Sent)
	require.Equal(t, []string{"m2"}, b.broker.published())
	require.Equal(t, "open", b.gate.state("orders"))
}

// After a crash in the middle of a drain the first rows of a closed topic are in Kafka already: marking them must not
// take an interval each.
func TestProbeThatIsInKafkaTriesTheNextAtOnce(t *testing.T) {
	t.Parallel()
	b := closedBench(t, 2)
	b.broker.tail["orders/m1"] = true
	require.True(t, b.pass(t).More)
	require.Equal(t, 1, b.pass(t).Sent)
	require.Equal(t, []string{"~m2"}, b.broker.published())
}

// Somebody has locked a row for a moment, so a claim leaves it out: those behind it have to wait.
func TestDrainStopsAtARowThatSomebodyElseHolds(t *testing.T) {
	t.Parallel()
	b := drainingBench(t, 1, 2, 3)
	b.table.locked[2] = true
	b.pass(t)
	require.NotContains(t, b.broker.published(), "m3")
	b.table.locked[2] = false
	for range 3 {
		b.pass(t)
	}
	require.Equal(t, []string{"m1", "m2", "m3"}, b.broker.published())
	require.Equal(t, outbox.Sent, b.table.status(3))
}

// Rows that the stream holds look deferred when they were written with a next_retry_time: it sends them when the
// topic is handed back.
func TestHandBackLeavesTheStreamWhatItHolds(t *testing.T) {
	t.Parallel()
	b := drainingBench(t)
	b.gate.onHold = func() {
		b.table.put("orders", outbox.Pending, 1, 2) // the first was deferred just before
		b.gate.held = map[outbox.Ref]bool{b.table.rows[2].row.Ref(): true}
		b.stream.set(sweeper.ErrBehind) // it has yet to send what it holds
	}
	_, err := b.Pass(t.Context())
	require.ErrorIs(t, err, sweeper.ErrBehind)
	require.Equal(t, []string{"m1"}, b.broker.published())
	require.Equal(t, "open", b.gate.state("orders"))
}

// The stream stands still while a topic is handed back: nobody knows what it will hold, so nothing is sent.
func TestHandBackWhileTheStreamStandsStill(t *testing.T) {
	t.Parallel()
	b := drainingBench(t)
	b.gate.onHold = func() { b.table.put("orders", outbox.Pending, 1) }
	b.stream.admitted = sweeper.ErrBehind
	_, err := b.Pass(t.Context())
	require.ErrorIs(t, err, sweeper.ErrBehind)
	require.Empty(t, b.broker.published())
	require.Equal(t, "draining", b.gate.state("orders"), "and the stream need not hold")
}
