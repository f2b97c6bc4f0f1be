package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/test/bubble"
)

func TestTry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		create   bool
		topic    kafka.Topic
		topicErr error
		outcome  error
		class    retry.Class
		want     error
		seen     bool
		created  bool
	}{
		{name: "Acked", topic: kafka.Topic{Exists: true, MaxMessageBytes: 99}, seen: true},
		{name: "NoTopic", class: retry.Refused, want: errNoTopic},
		{name: "NoTopicCreated", create: true, seen: true, created: true},
		{name: "TopicNotAllowed", topicErr: sarama.ErrTopicAuthorizationFailed, class: retry.Refused, want: sarama.ErrTopicAuthorizationFailed},
		{name: "BrokersAway", topicErr: errBroken, class: retry.Unreachable, want: errBroken},
		{name: "TooLarge", topic: kafka.Topic{Exists: true}, outcome: sarama.ErrMessageSizeTooLarge, class: retry.Never, want: sarama.ErrMessageSizeTooLarge, seen: true},
		{name: "Refused", topic: kafka.Topic{Exists: true}, outcome: sarama.ErrTopicAuthorizationFailed, class: retry.Refused, want: sarama.ErrTopicAuthorizationFailed, seen: true},
		{name: "TooFewReplicas", topic: kafka.Topic{Exists: true}, outcome: sarama.ErrNotEnoughReplicas, class: retry.Unreachable, want: sarama.ErrNotEnoughReplicas, seen: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			broker := &fakeBroker{topics: map[string]kafka.Topic{"orders": tt.topic}, topicErr: tt.topicErr}
			if tt.outcome != nil {
				broker.outcomes = []error{tt.outcome}
			}
			p := newProber(broker, tt.create, zerolog.Nop())
			seen := false
			a := p.try(t.Context(), &router.Record{Topic: "orders"}, func() {
				seen = true
				require.EqualValues(t, tt.topic.MaxMessageBytes, p.known("orders"))
				require.Empty(t, broker.probed, "seen before it is sent")
			})
			require.ErrorIs(t, a.err, tt.want)
			require.Equal(t, tt.class, a.class)
			require.Equal(t, tt.seen, seen)
			require.Equal(t, tt.created, len(broker.created) > 0)
			require.Equal(t, tt.seen, len(broker.probed) > 0, "nothing is sent to a topic that nobody knows")
		})
	}
}

func TestSizeLimitIsKeptWhenTheBrokersGoAway(t *testing.T) {
	t.Parallel()
	broker := &fakeBroker{topics: map[string]kafka.Topic{"orders": {Exists: true, MaxMessageBytes: 1000}}}
	p := newProber(broker, false, zerolog.Nop())
	limit := func(size int64) int64 {
		limit, err := p.limit(t.Context(), "orders", size)
		require.NoError(t, err)
		return limit
	}
	require.Zero(t, limit(2000), "nobody has asked")
	p.try(t.Context(), &router.Record{Topic: "orders"}, func() {})
	broker.topicErr = errBroken
	p.try(t.Context(), &router.Record{Topic: "orders"}, func() {})
	require.EqualValues(t, 1000, limit(2000))
	broker.topicErr, broker.topics["orders"] = nil, kafka.Topic{Exists: true, MaxMessageBytes: 3000}
	require.EqualValues(t, 1000, limit(1000), "it fits, nobody is asked")
	require.EqualValues(t, 3000, limit(2000), "somebody has raised it")
}

func TestTopicAppears(t *testing.T) {
	t.Parallel()
	broker := &fakeBroker{topics: map[string]kafka.Topic{}}
	p := newProber(broker, false, zerolog.Nop())
	require.False(t, p.appeared(t.Context(), "orders"), "it was never tried")
	p.try(t.Context(), &router.Record{Topic: "orders"}, func() {})
	require.False(t, p.appeared(t.Context(), "orders"))
	broker.topics["orders"] = kafka.Topic{Exists: true}
	require.True(t, p.appeared(t.Context(), "orders"))
	p.try(t.Context(), &router.Record{Topic: "orders"}, func() {})
	require.False(t, p.appeared(t.Context(), "orders"), "it is no news any more")
}

// A topic that an earlier session has tried is looked for, not tried.
func TestTopicAppearsAfterASessionThatTriedIt(t *testing.T) {
	t.Parallel()
	broker := &fakeBroker{topics: map[string]kafka.Topic{"there": {Exists: true}}}
	p := newProber(broker, false, zerolog.Nop())
	require.False(t, p.appeared(t.Context(), "orders"))
	broker.topics["orders"] = kafka.Topic{Exists: true}
	require.True(t, p.appeared(t.Context(), "orders"))
	require.False(t, p.appeared(t.Context(), "there"), "nobody knows what was wrong with it")
	require.False(t, p.appeared(t.Context(), "there"))
	require.Empty(t, broker.probed)
}

func TestReasonOfAFailure(t *testing.T) {
	t.Parallel()
	require.Equal(t, "no_topic", reasonOf(errNoTopic))
	require.Equal(t, "not_authorised", reasonOf(sarama.ErrTopicAuthorizationFailed))
}

// publishFirst publishes n messages to a topic that nobody has tried, and waits until the probe has its outcome.
func publishFirst(t *testing.T, b *flowBench, n int) {
	t.Helper()
	for range n {
		require.NoError(t, b.publish(t.Context(), b.message("k")))
	}
	synctest.Wait()
}

func TestProbeOpensItsTopic(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newFlowBench()
		publishFirst(t, b, 3)
		require.Equal(t, order.Open, b.state())
		require.Equal(t, []string{"sent m1"}, b.verdicts())
		require.Equal(t, []string{"m2", "m3"}, ids(b.kafka.items()))
		require.Equal(t, byPartition{"orders": {0: 1}}, b.offsets.snapshot(b.marker))
	})
}

func TestProbeWaitsForTheBrokers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newFlowBench()
		b.broker.topicErr, b.broker.away = errBroken, errBroken
		publishFirst(t, b, 3)
		advance(t, time.Hour)
		require.Equal(t, order.Probing, b.state())
		require.Empty(t, b.verdicts(), "brokers away are nobody's fault: nothing is spent, nothing is written")
		b.broker.set(func() { b.broker.topicErr, b.broker.away = nil, nil })
		advance(t, 2*time.Second)
		require.Equal(t, order.Open, b.state())
		require.Equal(t, []string{"m2", "m3"}, ids(b.kafka.items()))
	})
}

func TestProbeRefused(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newFlowBench()
		b.broker.topics = nil
		publishFirst(t, b, 3)
		require.Equal(t, order.Closed, b.state())
		require.Equal(t, []string{"failed m1", "deferred m2", "deferred m3"}, b.verdicts())
		b.requireIdle(t)
		probe, _, _ := b.gate.Work(time.Now())
		require.Empty(t, probe, "the sweeper would take a later row")
		b.settle()
		probe, _, _ = b.gate.Work(time.Now())
		require.Equal(t, []string{"orders"}, probe)
		require.Zero(t, b.tracker.Open())
	})
}

func TestProbesThatAreDead(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newFlowBench()
		b.broker.outcomes = []error{sarama.ErrMessageSizeTooLarge, sarama.ErrInvalidRecord, nil}
		publishFirst(t, b, 4)
		require.Equal(t, order.Open, b.state())
		require.Equal(t, []string{"dead m1", "dead m2", "sent m3"}, b.verdicts())
		require.Equal(t, []string{"m4"}, ids(b.kafka.items()))
	})
}

// Only this topic is in trouble, the others go on: it becomes the sweeper's, and no message spends a retry.
func TestProbeOfATopicWithoutALeader(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newFlowBench()
		b.broker.outcomes = []error{sarama.ErrLeaderNotAvailable}
		publishFirst(t, b, 3)
		require.Equal(t, order.Closed, b.state())
		require.ElementsMatch(t, []string{"deferred m1", "deferred m2", "deferred m3"}, b.verdicts())
		_, _, wait := b.gate.Work(time.Now())
		require.Equal(t, unreachablePause, wait)
		b.requireIdle(t)
	})
}

func TestProbeThatTakesLongHoldsForASecond(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newFlowBench()
		answers := make(chan struct{})
		b.broker.answers = answers
		publishFirst(t, b, 3)
		advance(t, holdAtMost-1)
		require.Empty(t, b.verdicts())
		advance(t, 1)
		require.Equal(t, []string{"deferred m2", "deferred m3"}, b.verdicts())
		answers <- struct{}{}
		synctest.Wait()
		require.Equal(t, order.Draining, b.state())
	})
}

func TestProbeEndsWithTheSession(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newFlowBench()
		b.broker.topicErr, b.broker.away = errBroken, errBroken
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, b.publish(ctx, b.message("k")))
		synctest.Wait()
		cancel()
		b.probes.Wait()
		require.Empty(t, b.verdicts(), "it is read again after the next start")
		require.Equal(t, 1, b.tracker.Open())
	})
}
