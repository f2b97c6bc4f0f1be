package relay

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/sweeper"
)

// fakeBroker answers probes and questions about topics as the test says, per call.
type fakeBroker struct {
	Broker
	mu       sync.Mutex
	topics   map[string]kafka.Topic
	topicErr error
	created  []string
	probed   []string
	outcomes []error // of the probes, the last one repeats; none: acked
	offset   int64
	away     error // what Reachable returns
	answers  <-chan struct{}
	producer Producer
}

func (b *fakeBroker) NewProducer(func(kafka.Result)) (Producer, error) { return b.producer, nil }

func (b *fakeBroker) Topic(_ context.Context, name string) (kafka.Topic, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topics[name]
	t.Name = name
	return t, b.topicErr
}

func (b *fakeBroker) CreateTopic(_ context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.created = append(b.created, name)
	return nil
}

func (b *fakeBroker) Probe(_ context.Context, rec *router.Record) (int32, int64, error) {
	if b.answers != nil {
		<-b.answers
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probed = append(b.probed, string(rec.Key))
	var err error
	if len(b.outcomes) > 0 {
		err = b.outcomes[0]
		if len(b.outcomes) > 1 {
			b.outcomes = b.outcomes[1:]
		}
	}
	b.offset++
	return 0, b.offset, err
}

func (b *fakeBroker) Reachable(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.away
}

func (b *fakeBroker) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// flowBench is a flow whose marker does not run: what it is given stays to be looked at.
type flowBench struct {
	*flow
	broker  *fakeBroker
	kafka   *fakeProducer
	rows    *fakeRows
	log     *logBuffer
	tracker *Tracker
	topic   *line
	gate    topics
	failed  chan error
	id      uint64
}

func newFlowBench() *flowBench {
	b := &flowBench{
		broker: &fakeBroker{topics: map[string]kafka.Topic{"orders": {Exists: true}}},
		kafka:  &fakeProducer{}, rows: &fakeRows{}, log: &logBuffer{}, tracker: NewTracker(startPosition),
		failed: make(chan error, 10), // more than any test provokes
	}
	m := newMetrics()
	b.broker.producer = b.kafka
	f, err := newFlow(flowParts{
		cfg:    Config{Limits: Limits{InFlight: 100, InFlightBytes: 1 << 20, Unmarked: 100}, Order: order.Config{Hold: true}},
		broker: b.broker, tables: tables(b.rows), fail: func(err error) { b.failed <- err }, notify: func() {},
		marks: markerConfig{batch: 1000, delay: time.Second}, metrics: m, reckoning: sweeper.NewReckoning(m), log: b.log.logger(),
	})
	if err != nil {
		panic(err) // the producer is a fake
	}
	b.flow = f
	b.gate = topics{f.lines}
	b.topic = f.lines.topic("orders")
	return b
}

func (b *flowBench) message(key string) *item {
	b.id++
	return itemOf(b.tracker, b.id, b.topic, key)
}

// open makes the topic open.
func (b *flowBench) open(ctx context.Context) {
	b.gate.BeginProbe("orders")
	if _, err := b.gate.HandBack(ctx, "orders"); err != nil {
		panic(err) // nothing is held
	}
}

// outcomes returns what waits to be written, such as "sent m1".
func (b *flowBench) verdicts() []string {
	names := map[outcome]string{outcomeSent: "sent", outcomeFailed: "failed", outcomeDead: "dead", outcomeDeferred: "deferred"}
	var list []string
	b.marker.waiting(func(v *verdict) { list = append(list, names[v.outcome]+" "+v.it.ref.MsgID) })
	return list
}

// settle settles all that waits, as the marker would.
func (b *flowBench) settle() {
	b.marker.mu.Lock()
	batch := b.marker.cut() // unlocks
	b.marker.mu.Lock()
	b.marker.writing = nil
	b.marker.mu.Unlock()
	b.settled(batch)
}

// state reads the topic's state.
func (b *flowBench) state() order.State {
	b.lines.mu.Lock()
	defer b.lines.mu.Unlock()
	return b.topic.State()
}

func (b *flowBench) requireIdle(t *testing.T) {
	t.Helper()
	rows, bytes := b.inFlight.used()
	require.Zero(t, rows, "rows in flight")
	require.Zero(t, bytes, "bytes in flight")
}

var errBroken = errors.New("connection reset")
