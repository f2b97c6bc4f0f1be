package relay_test

import (
	"context"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/sweeper"
)

// process is one relay attached to a world.
type process struct {
	relay  *relay.Relay
	cancel context.CancelFunc
	done   chan error
}

// testConfig has a window and batches that are soon full.
func testConfig() relay.Config {
	policy := retry.Policy{Backoff: []time.Duration{time.Second, 3 * time.Second}, Jitter: 0.2, MaxRetries: 100}
	return relay.Config{
		Source: "test", By: "test", Mode: relay.Auto, Start: "now", SaveInterval: time.Second,
		Limits: relay.Limits{InFlight: 40, InFlightBytes: 1 << 20, Unmarked: 100, MarkBatch: 10, MarkDelay: 20 * time.Millisecond},
		Retry:  policy, DedupeOnRestart: true, DrainTimeout: 10 * time.Second,
		Sweep: sweeper.Config{Interval: 30 * time.Second, Batch: 7, Grace: 0, Lease: relay.ClaimLease, Retry: policy},
	}
}

// newRelay attaches a relay to a world.
func newRelay(t require.TestingT, w *world, generation int, cfg relay.Config) *relay.Relay {
	h := &hands{world: w, generation: generation}
	route, err := router.New(router.Config{Source: "test"})
	require.NoError(t, err)
	log := zerolog.Nop()
	if os.Getenv("RELAY_TEST_LOG") != "" {
		log = zerolog.New(os.Stderr)
	}
	return relay.New(cfg, relay.Deps{
		OpenReader: func(context.Context) (relay.Reader, error) { return &reader{hands: h}, nil },
		Tables:     relay.TablesOf(h), Broker: broker{h}, Checkpoints: h, Lock: lock{w}, Router: route,
		Metrics: metrics.New("test").Source("test"),
	}, log)
}

func start(t require.TestingT, w *world, generation int) *process {
	return startWith(t, w, generation, testConfig())
}

func startWith(t require.TestingT, w *world, generation int, cfg relay.Config) *process {
	r := newRelay(t, w, generation, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{relay: r, cancel: cancel, done: make(chan error, 1)}
	if test, ok := t.(interface{ Cleanup(cleanup func()) }); ok {
		test.Cleanup(cancel) // also when the test fails half-way
	}
	go func() { p.done <- r.Run(ctx) }()
	return p
}

// stop stops a relay cleanly.
func (p *process) stop() error {
	p.cancel()
	return <-p.done
}

// settle waits until no row is pending or failed.
func (w *world) settle(t require.TestingT, limit time.Duration) {
	deadline := time.Now().Add(limit)
	for {
		n, such := w.left()
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(t, "not settled", "%d rows, such as %+v", n, such)
		}
		pause(context.Background(), 100*time.Millisecond)
	}
}

// left returns how many rows are not settled, and one of them.
func (w *world) left() (n int, such tableRow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := w.unsettled()
	if len(open) > 0 {
		such = *open[0]
	}
	return len(open), such
}

// position returns where in Kafka a message stands, counted over all topics, -1 when it is not there.
func (w *world) position(msgID string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range w.records {
		if r.msgID == msgID {
			return i
		}
	}
	return -1
}

// requireOrder checks that the messages are in Kafka in this order.
func (w *world) requireOrder(t require.TestingT, first, second string) {
	require.GreaterOrEqual(t, w.position(first), 0, "%s is not in Kafka", first)
	require.Less(t, w.position(first), w.position(second), "%s was overtaken by %s", first, second)
}

// until waits until something has happened, not longer than a minute.
func until(t require.TestingT, what string, happened func() bool) {
	for deadline := time.Now().Add(time.Minute); !happened(); pause(context.Background(), time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(t, "it never came to "+what)
		}
	}
}

// verdict checks that every row was sent and no key's order lost, and returns the number of duplicates.
func (w *world) verdict(t require.TestingT) (duplicates int) {
	return w.judge(t, func(*tableRow) bool { return true })
}

// judge checks no loss, and the order of first occurrences among the rows of which ordered says so. It returns the
// number of duplicates. Discarded rows may be missing.
func (w *world) judge(t require.TestingT, ordered func(*tableRow) bool) (duplicates int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	byMsgID := map[string]*tableRow{}
	for _, r := range w.table {
		byMsgID[r.row.MsgID] = r
	}
	seen := map[string]bool{}
	last := map[string]string{}
	for _, rec := range w.records {
		if seen[rec.msgID] {
			duplicates++
			continue
		}
		seen[rec.msgID] = true
		if !ordered(byMsgID[rec.msgID]) {
			continue
		}
		key := rec.topic + "/" + rec.key
		if last[key] > rec.msgID {
			require.FailNow(t, "verdict: out of order", "%s came after %s", rec.msgID, last[key])
		}
		last[key] = rec.msgID
	}
	for _, r := range w.table {
		if r.status == outbox.Discarded {
			continue
		}
		assert.True(t, seen[r.row.MsgID], "verdict: lost %s", r.row.MsgID)
		assert.Equal(t, outbox.Sent, r.status, "status of %s", r.row.MsgID)
	}
	return duplicates
}
