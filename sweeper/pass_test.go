package sweeper_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/sweeper"
	"example.com/outbox-relay/test/bubble"
)

func value(t *testing.T, c prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, c.Write(&m))
	return m.GetCounter().GetValue()
}

func only(id string) func(string) bool { return func(msgID string) bool { return msgID == id } }

func refuse(err error, ids ...string) func(string) error {
	return func(msgID string) error {
		if slices.Contains(ids, msgID) {
			return err
		}
		return nil
	}
}

func TestFirstToATopicGoesAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.table.put("orders", outbox.Pending, 2, 1, 3)
	r := b.pass(t)
	require.Equal(t, sweeper.Result{Sent: 3, More: true}, r)
	require.Equal(t, []string{"~m1", "m2", "m3"}, b.broker.published())
	require.Equal(t, []string{"begin orders", "acked orders"}, b.gate.done())
	require.Equal(t, []string{"claim m1 m2 m3", "sent m1 m2 m3"}, b.table.done())
	require.Equal(t, 1, b.broker.marked)
	require.InDelta(t, 3, value(t, b.metrics.Published.WithLabelValues("orders", words.OriginSweep)), 0)
	require.False(t, b.pass(t).More)
}

func TestOpenTopicIsPipelined(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["orders"] = "open"
	b.table.put("orders", outbox.Pending, 5, 4)
	require.Equal(t, sweeper.Result{Sent: 2}, b.pass(t))
	require.Equal(t, []string{"m4", "m5"}, b.broker.published())
}

func TestTopicsGoOneAfterTheOtherByID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["a"], b.gate.states["b"] = "open", "open"
	b.table.put("b", outbox.Pending, 1)
	b.table.put("a", outbox.Failed, 3, 2)
	require.Equal(t, sweeper.Result{Sent: 3, More: true}, b.pass(t))
	require.Equal(t, []string{"m2", "m3", "m1"}, b.broker.published())
}

// The candidates were read while the topic was open; then the stream closed it.
func TestTopicThatIsClosedMeanwhileIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["orders"] = "open"
	b.table.put("orders", outbox.Pending, 1)
	b.stream.onPassed = func() { b.gate.Close("orders", "", 0) }
	require.Equal(t, sweeper.Result{}, b.pass(t))
	require.Empty(t, b.broker.published())
	require.Equal(t, []string{"claim m1", "release m1"}, b.table.done())
}

func TestRefusedFirstClosesTheTopic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.broker.refuse = refuse(errRefused, "m1")
	b.table.put("orders", outbox.Pending, 1, 2, 3)
	require.Equal(t, sweeper.Result{Failed: 1}, b.pass(t))
	require.Equal(t, []string{"claim m1 m2 m3", "failed m1", "release m2 m3"}, b.table.done())
	require.Equal(t, "closed", b.gate.state("orders"))
	require.Empty(t, b.broker.published())
	require.InDelta(t, 1, value(t, b.metrics.Failed.WithLabelValues("orders", "not_authorised")), 0)
}

// Only the first failure of a batch is a row's own; the others share its fate and spend no retry.
func TestRefusedBatchSpendsOneRetry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["orders"] = "open"
	b.broker.refuse = refuse(errRefused, "m1", "m2", "m3")
	b.table.put("orders", outbox.Pending, 1, 2, 3)
	require.Equal(t, sweeper.Result{Failed: 1}, b.pass(t))
	require.Equal(t, []string{"claim m1 m2 m3", "failed m1", "release m2 m3"}, b.table.done())
	require.Equal(t, "closed", b.gate.state("orders"))
	require.InDelta(t, 2, value(t, b.metrics.SweepRows.WithLabelValues("released")), 0)
}

func TestUnreachableSpendsNothing(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"", "open"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if state != "" {
				b.gate.states["orders"] = state
			}
			b.broker.refuse = refuse(errUnreachable, "m1", "m2")
			b.table.put("orders", outbox.Pending, 1, 2)
			require.Equal(t, sweeper.Result{}, b.pass(t))
			require.Equal(t, []string{"claim m1 m2", "release m1 m2"}, b.table.done())
			require.Zero(t, b.table.rows[1].tries)
		})
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	t.Run("RefusedForGood", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.gate.states["orders"] = "open"
		b.broker.refuse = refuse(errNever, "m1")
		b.table.put("orders", outbox.Pending, 1, 2)
		require.Equal(t, sweeper.Result{Sent: 1, Dead: 1}, b.pass(t))
		require.Equal(t, "open", b.gate.state("orders"), "it was the message's fault")
		require.InDelta(t, 1, value(t, b.metrics.Dead.WithLabelValues("orders", "too_large")), 0)
	})
	t.Run("Unroutable", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.table.put("bad topic", outbox.Pending, 1)
		require.Equal(t, sweeper.Result{Dead: 1}, b.pass(t))
		require.Empty(t, b.gate.done(), "nothing was tried")
		require.InDelta(t, 1, value(t, b.metrics.Dead.WithLabelValues("bad topic", "topic_invalid")), 0)
	})
	t.Run("RetriesSpent", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.gate.states["orders"] = "open"
		b.broker.refuse = refuse(errRefused, "m1")
		b.table.put("orders", outbox.Failed, 1)
		b.table.rows[1].tries = 2
		require.Equal(t, sweeper.Result{Failed: 1, Dead: 1}, b.pass(t))
		require.Equal(t, outbox.Dead, b.table.status(1))
	})
}

// Found in Kafka: a process that died has sent it and could not mark it.
func TestPublishedRowsAreOnlyMarked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["orders"] = "open"
	b.broker.tail["orders/m1"], b.broker.tail["other/m2"] = true, true
	b.table.put("orders", outbox.Pending, 1, 2)
	require.Equal(t, sweeper.Result{Sent: 2}, b.pass(t))
	require.Equal(t, []string{"m2"}, b.broker.published())
	require.Equal(t, outbox.Sent, b.table.status(1))
	require.InDelta(t, 1, value(t, b.metrics.Suppressed.WithLabelValues(words.SuppressedByTail)), 0)
}

func TestBehindSendsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.stream.err = sweeper.ErrBehind
	b.gate.states["closed"] = "closed"
	b.table.put("orders", outbox.Pending, 1)
	b.table.put("closed", outbox.Failed, 2)
	_, err := b.Pass(t.Context())
	require.ErrorIs(t, err, sweeper.ErrBehind)
	delete(b.gate.states, "closed")
	_, err = b.Pass(t.Context())
	require.ErrorIs(t, err, sweeper.ErrBehind)
	require.Empty(t, b.table.done(), "nothing is even claimed")
	require.Empty(t, b.broker.published())
}

// The producer was given up: what it had told counts, the rest stays claimed until the lease ends.
func TestProducerGivenUp(t *testing.T) {
	t.Parallel()
	for range 20 { // both channels are ready: either may be looked at first
		b := newBench(t)
		b.gate.states["orders"] = "open"
		b.broker.silent = only("m2")
		close(b.broker.gone)
		b.table.put("orders", outbox.Pending, 1, 2, 3)
		require.Equal(t, 2, b.pass(t).Sent)
		require.Equal(t, []string{"claim m1 m2 m3", "sent m1 m3"}, b.table.done())
		require.True(t, b.table.rows[2].next.After(time.Now()), "still claimed")
	}
}

func TestClosedProducerGivesTheRowsBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["orders"] = "open"
	b.broker.closed = true
	b.table.put("orders", outbox.Pending, 1, 2)
	r, err := b.Pass(t.Context())
	require.ErrorIs(t, err, errClosed)
	require.Equal(t, sweeper.Result{}, r)
	require.Equal(t, []string{"claim m1 m2", "release m1 m2"}, b.table.done())
}

// What was published is marked although the sweep is being stopped.
func TestOutcomesAreWrittenWhileStopping(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["orders"] = "open"
	b.table.put("orders", outbox.Pending, 1)
	ctx, cancel := context.WithCancel(t.Context())
	b.broker.refuse = func(string) error { cancel(); return nil }
	_, err := b.Pass(ctx)
	require.NoError(t, err)
	require.Equal(t, outbox.Sent, b.table.status(1))
}

// A row that was published is marked however long the database is away; when the sweep is stopped before that, it
// stays covered by the offsets.
func TestMarksThatCouldNotBeWritten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.gate.states["orders"] = "open"
		b.table.put("orders", outbox.Pending, 1)
		b.broker.refuse = func(string) error {
			b.table.setFail(errClosed)
			time.AfterFunc(time.Minute, func() { b.table.setFail(nil) })
			return nil
		}
		_, err := b.Pass(t.Context())
		require.NoError(t, err)
		require.Equal(t, outbox.Sent, b.table.status(1))

		b.table.put("orders", outbox.Pending, 2)
		ctx, cancel := context.WithCancel(t.Context())
		b.broker.refuse = func(string) error { b.table.setFail(errClosed); time.AfterFunc(time.Second, cancel); return nil }
		marked := b.broker.marked
		_, err = b.Pass(ctx)
		require.ErrorIs(t, err, errClosed)
		require.Equal(t, marked, b.broker.marked, "the offsets must go on covering it")
	})
}

func TestPassOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["closed"], b.gate.states["draining"], b.gate.states["open"] = "closed", "draining", "open"
	b.table.put("open", outbox.Pending, 1)
	b.table.put("draining", outbox.Pending, 2)
	b.table.put("closed", outbox.Failed, 3)
	b.pass(t)
	require.Equal(t, []string{"~m3", "m2", "m1"}, b.broker.published(), "probes, drains, and then the rest")
}
