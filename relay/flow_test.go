package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

// The sweeper's lone first message to a topic takes long: what the stream has for the topic is not held meanwhile.
func TestSlowTryOfTheSweeperHoldsNoMessages(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newFlowBench()
		answers := make(chan struct{})
		b.broker.answers = answers
		p := &publisher{flow: b.flow, gone: make(chan struct{})}
		probe, _ := b.gate.BeginProbe("orders")
		require.True(t, probe)
		tried := make(chan error, 1) // size 1: the goroutine ends by itself
		go func() { tried <- p.Try(t.Context(), "orders", &router.Record{Topic: "orders"}) }()
		synctest.Wait()
		require.NoError(t, b.publish(t.Context(), b.message("k")))
		require.Empty(t, b.verdicts())
		advance(t, holdAtMost)
		require.Equal(t, []string{"deferred m1"}, b.verdicts())
		close(answers)
		require.NoError(t, <-tried)
		_, err := b.gate.HandBack(t.Context(), "orders")
		require.NoError(t, err)
		require.Equal(t, order.Draining, b.state())
		b.settle()
	})
}

// sendAll publishes n messages to an open topic.
func sendAll(t *testing.T, b *flowBench, n int) []*item {
	t.Helper()
	b.open(t.Context())
	for range n {
		require.NoError(t, b.publish(t.Context(), b.message("k")))
	}
	items := b.kafka.items()
	require.Len(t, items, n)
	return items
}

func TestAckIsMarkedAndSettled(t *testing.T) {
	t.Parallel()
	b := newFlowBench()
	items := sendAll(t, b, 2)
	b.result(kafka.Result{Token: items[0], Partition: 3, Offset: 41})
	require.Equal(t, []string{"sent m1"}, b.verdicts())
	require.Equal(t, byPartition{"orders": {3: 41}}, b.offsets.snapshot(b.marker))
	rows, _ := b.inFlight.used()
	require.Equal(t, 1, rows)
	rows, _ = b.unmarked.used()
	require.Equal(t, 2, rows)
	require.Equal(t, 2, b.tracker.Open(), "acked is not settled")
	b.settle()
	require.Equal(t, 1, b.tracker.Open())
	rows, _ = b.unmarked.used()
	require.Equal(t, 1, rows)
	require.Equal(t, byPartition{"orders": {3: 42}}, b.offsets.snapshot(b.marker))
	require.InDelta(t, 1, value(t, b.metrics.Published.WithLabelValues("orders", words.OriginStream)), 0)
}

// Only the first refusal of a pipelined batch is a message's own; the others share its fate and spend no retry.
func TestRefusedBatchSpendsOneRetry(t *testing.T) {
	t.Parallel()
	b := newFlowBench()
	for _, it := range sendAll(t, b, 3) {
		b.result(kafka.Result{Token: it, Err: sarama.ErrTopicAuthorizationFailed})
	}
	require.Equal(t, []string{"failed m1", "deferred m2", "deferred m3"}, b.verdicts())
	require.Equal(t, order.Closed, b.state())
	_, _, wait := b.gate.Work(time.Now().Add(time.Minute))
	require.Equal(t, order.Settling, wait, "the sweeper waits for the failure to be written")
	b.requireIdle(t)
	require.Empty(t, b.failed)
	b.settle()
	probe, _, _ := b.gate.Work(time.Now().Add(time.Minute))
	require.Equal(t, []string{"orders"}, probe)
}

func TestAckAfterARefusalIsAViolation(t *testing.T) {
	t.Parallel()
	b := newFlowBench()
	items := sendAll(t, b, 2)
	b.result(kafka.Result{Token: items[0], Err: sarama.ErrTopicAuthorizationFailed})
	b.result(kafka.Result{Token: items[1]})
	require.InDelta(t, 1, value(t, b.metrics.OrderViolations), 0)
	require.Equal(t, 1, b.log.count(`"message_id":"m2","earlier_message_id":"m1"`), "never silent")
}

func TestUnknownOutcomeEndsTheSession(t *testing.T) {
	t.Parallel()
	b := newFlowBench()
	items := sendAll(t, b, 1)
	b.result(kafka.Result{Token: items[0], Err: errBroken})
	err := <-b.failed
	require.ErrorIs(t, err, errUnknownOutcome)
	require.ErrorIs(t, err, errBroken)
	require.Empty(t, b.verdicts(), "it stays unsettled and is read again")
	require.Equal(t, 1, b.tracker.Open())
}

func TestMessageRefusedForGoodIsDead(t *testing.T) {
	t.Parallel()
	b := newFlowBench()
	items := sendAll(t, b, 2)
	b.result(kafka.Result{Token: items[0], Err: sarama.ErrInvalidTopic})
	b.result(kafka.Result{Token: items[1]})
	require.Equal(t, []string{"dead m1", "sent m2"}, b.verdicts())
	require.Equal(t, order.Open, b.state())
	require.InDelta(t, 1, value(t, b.metrics.Dead.WithLabelValues("orders", "invalid_topic")), 0)
	require.InDelta(t, 0, value(t, b.metrics.OrderViolations), 0, "a dead letter lets its key go on")
}

func TestTooLargeForItsTopic(t *testing.T) {
	t.Parallel()
	b := newFlowBench()
	b.open(t.Context())
	b.prober.learn("orders", kafka.Topic{MaxMessageBytes: 10})
	large := b.message("k")
	large.rec.Value = make([]byte, 11)
	require.NoError(t, b.publish(t.Context(), large))
	require.Equal(t, []string{"dead m1"}, b.verdicts())
	require.Empty(t, b.kafka.items())
	b.requireIdle(t)
	b.settle()
	rows, _ := b.unmarked.used()
	require.Zero(t, rows)
}

func TestSendThatFailsEndsTheSession(t *testing.T) {
	t.Parallel()
	b := newFlowBench()
	b.open(t.Context())
	b.kafka.err = kafka.ErrClosed
	require.ErrorIs(t, b.publish(t.Context(), b.message("k")), kafka.ErrClosed)
	require.ErrorIs(t, <-b.failed, kafka.ErrClosed)
	stopping, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.onward(stopping, b.message("k"), order.Send), kafka.ErrClosed, "also while stopping: nothing may come behind it")
}

func TestFullWindowsStopThePump(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		full func(*flowBench) *window
	}{
		{"InFlight", func(b *flowBench) *window { b.inFlight = newWindow(1, 1<<20); return b.inFlight }},
		{"Unmarked", func(b *flowBench) *window { b.unmarked = newWindow(1, 1); return b.unmarked }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b := newFlowBench()
				w := tt.full(b)
				sendAll(t, b, 1)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				require.ErrorIs(t, b.publish(ctx, b.message("k")), context.DeadlineExceeded)
				require.InDelta(t, 3, value(t, b.metrics.Backpressure), 0.001)
				require.Len(t, b.kafka.items(), 1)
				published := make(chan error, 1)
				go func() { published <- b.publish(t.Context(), b.message("k")) }()
				synctest.Wait()
				require.Empty(t, published)
				rows, bytes := w.used()
				w.release(rows, bytes)
				require.NoError(t, <-published)
			})
		})
	}
}

// Rows that were written with a next_retry_time may have been swept before the stream has read them.
func TestHeldRowsThatWereSweptMeanwhile(t *testing.T) {
	t.Parallel()
	b := newFlowBench()
	held := make([]*item, 5)
	for i := range held {
		held[i] = b.message("k")
		held[i].hasNextRetry = i > 0
		require.NoError(t, b.reserve(t.Context(), held[i]))
	}
	b.rows.found = map[outbox.Ref]store.Found{
		held[0].ref: {Status: outbox.Sent}, // not asked about
		held[1].ref: {Status: outbox.Sent},
		held[2].ref: {Status: outbox.Pending, HasNextRetry: true},
		held[3].ref: {Status: outbox.Dead},
	} // the last one can't be read
	left, err := b.stillPending(t.Context(), held)
	require.NoError(t, err)
	require.Equal(t, []string{"m1", "m3", "m5"}, ids(left))
	require.Equal(t, []string{"lookup m2 m3 m4 m5"}, b.rows.done())
	rows, _ := b.unmarked.used()
	require.Equal(t, 3, rows)
}

func TestSweepersRecordsShareTheProducer(t *testing.T) {
	t.Parallel()
	b := newFlowBench()
	p := &publisher{flow: b.flow, gone: make(chan struct{})}
	var results []error
	for range 3 {
		require.NoError(t, p.Publish(t.Context(), &router.Record{Topic: "orders"}, func(err error) { results = append(results, err) }))
	}
	for i, err := range []error{nil, sarama.ErrTopicAuthorizationFailed, errBroken} {
		b.result(kafka.Result{Token: b.kafka.handed[i].Token, Offset: 6, Err: err})
	}
	require.Equal(t, []error{nil, sarama.ErrTopicAuthorizationFailed, errBroken}, results)
	require.ErrorIs(t, <-b.failed, errUnknownOutcome)
	require.Empty(t, b.failed)
	require.Equal(t, byPartition{"orders": {0: 6}}, b.offsets.snapshot(b.marker))
	p.Marked()
	require.Equal(t, byPartition{"orders": {0: 7}}, b.offsets.snapshot(b.marker))
	require.NoError(t, p.Try(t.Context(), "orders", &router.Record{Topic: "orders", Key: []byte("k")}))
	class, reason := p.Classify(errNoTopic)
	require.Equal(t, retry.Refused, class)
	require.Equal(t, "no_topic", reason)
}
