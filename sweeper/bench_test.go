package sweeper_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/sweeper"
)

// gate is relay.Gate's states without its memory, with a journal.
type gate struct {
	mu      sync.Mutex
	states  map[string]string // fresh when missing
	journal []string
	ending  error // what handing over what is held comes to
	early   bool  // too early for handing back
	held    map[outbox.Ref]bool
	probeAt map[string]time.Time
	onHold  func()
	full    int // so many hand-backs fail, because the stream had to give up holding
}

func (g *gate) set(topic, state, note string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.states[topic] = state
	g.journal = append(g.journal, note+" "+topic)
}

func (g *gate) state(topic string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.states[topic]
}

func (g *gate) done() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.journal)
}

func (g *gate) Closed() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for name, state := range g.states {
		if state != "open" {
			names = append(names, name)
		}
	}
	return names
}

func (g *gate) Work(now time.Time) (probe, drain []string, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, state := range g.states {
		switch left := g.probeAt[name].Sub(now); {
		case state == "closed" && left <= 0:
			probe = append(probe, name)
		case state == "closed" && (wait == 0 || left < wait):
			wait = left
		case state == "draining":
			drain = append(drain, name)
		}
	}
	return probe, drain, wait
}

func (g *gate) BeginProbe(topic string) (probe, isOpen bool) {
	state := g.state(topic)
	if state == "" {
		g.set(topic, "probing", "begin")
	}
	return state == "", state == "open"
}

func (g *gate) ProbeAcked(_ context.Context, topic string) error {
	g.set(topic, "open", "acked")
	return g.ending
}

func (g *gate) Close(topic, _ string, wait time.Duration) {
	g.wait(topic, wait)
	g.set(topic, "closed", "close")
}

func (g *gate) ProbeLater(topic string, wait time.Duration) {
	g.wait(topic, wait)
	g.set(topic, g.state(topic), "later")
}

func (g *gate) wait(topic string, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.probeAt == nil {
		g.probeAt = make(map[string]time.Time)
	}
	g.probeAt[topic] = time.Now().Add(d)
}

func (g *gate) Unhold(topic string) {
	if g.state(topic) == "handing" {
		g.set(topic, "draining", "unhold")
	}
}

func (g *gate) Drain(topic string, acked bool) {
	note := "drain"
	if !acked {
		note = "drain unacked"
	}
	g.set(topic, "draining", note)
}

func (g *gate) Held(string) map[outbox.Ref]bool { return g.held }

func (g *gate) Hold(_ context.Context, topic string) bool {
	if g.early {
		return false
	}
	g.set(topic, "handing", "hold")
	if g.onHold != nil {
		g.onHold()
	}
	return true
}

func (g *gate) HandBack(_ context.Context, topic string) (bool, error) {
	if g.full > 0 {
		g.full--
		g.set(topic, "draining", "give up")
		return false, nil
	}
	g.set(topic, "open", "hand back")
	return true, nil
}

// broker is Kafka as the sweeper sees it. refuse says what becomes of a message, nil: acked.
type broker struct {
	mu       sync.Mutex
	kafka    []string // msg_ids, lone ones with a ~ before them
	refuse   func(msgID string) error
	fill     func(rows []outbox.Row) (n int, errs []error)
	silent   func(msgID string) bool // no result comes
	gone     chan struct{}
	tail     map[string]bool
	appeared bool
	marked   int
	closed   bool
	ends     func(msgID string) bool // the session ends before a message is handed over
}

var (
	errRefused     = errors.New("not authorised")
	errNever       = errors.New("too large")
	errUnreachable = errors.New("no leader")
	errClosed      = errors.New("producer closed")
)

func idOf(rec *router.Record) string {
	for _, h := range rec.Headers {
		if h.Key == "msg_id" {
			return string(h.Value)
		}
	}
	return ""
}

func (b *broker) deliver(rec *router.Record, mark string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		if err := b.refuse(idOf(rec)); err != nil {
			return err
		}
	}
	b.kafka = append(b.kafka, mark+idOf(rec))
	return nil
}

func (b *broker) Publish(_ context.Context, rec *router.Record, done func(error)) error {
	if b.closed || b.ends != nil && b.ends(idOf(rec)) {
		b.closed = true
		return errClosed
	}
	if b.silent == nil || !b.silent(idOf(rec)) {
		done(b.deliver(rec, ""))
	}
	return nil
}

func (b *broker) Try(_ context.Context, _ string, rec *router.Record) error {
	return b.deliver(rec, "~")
}

// Fill knows no staged bodies but what a test says.
func (b *broker) Fill(_ context.Context, rows []outbox.Row) (n int, errs []error) {
	if b.fill != nil {
		return b.fill(rows)
	}
	return len(rows), make([]error, len(rows))
}

func (b *broker) Published(topic, msgID string) bool    { return b.tail[topic+"/"+msgID] }
func (b *broker) Marked()                               { b.marked++ }
func (b *broker) Gone() <-chan struct{}                 { return b.gone }
func (b *broker) Appeared(context.Context, string) bool { return b.appeared }
func (b *broker) Classify(err error) (retry.Class, string) {
	switch {
	case errors.Is(err, errRefused):
		return retry.Refused, "not_authorised"
	case errors.Is(err, errNever):
		return retry.Never, "too_large"
	}
	return retry.Unreachable, "unreachable"
}

func (b *broker) published() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.kafka)
}

// stream is how far the binlog has been dealt with.
type stream struct {
	mu       sync.Mutex
	err      error
	admitted error // what Admitted returns
	onPassed func()
}

func (s *stream) Admitted(context.Context) error { return s.admitted }

func (s *stream) Passed(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onPassed != nil {
		s.onPassed()
	}
	return s.err
}

func (s *stream) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// bench is a sweeper with a batch of 3 among its fakes.
type bench struct {
	*sweeper.Sweeper
	table   *table
	gate    *gate
	keys    *keys
	broker  *broker
	stream  *stream
	metrics *metrics.Source
	log     *logBuffer
	// reckoning is fed as the stream does it.
	reckoning *sweeper.Reckoning
}

const interval = 30 * time.Second

func newBench(t *testing.T) *bench { return newBenchOf(t, func(*sweeper.Config) {}) }

func newBenchOf(t *testing.T, configure func(*sweeper.Config)) *bench {
	t.Helper()
	route, err := router.New(router.Config{Source: "test"})
	require.NoError(t, err)
	b := &bench{
		table: newTable(), gate: &gate{states: map[string]string{}}, keys: &keys{}, stream: &stream{}, log: &logBuffer{},
		broker: &broker{gone: make(chan struct{}), tail: map[string]bool{}}, metrics: metrics.New("test").Source("test"),
	}
	b.reckoning = sweeper.NewReckoning(b.metrics)
	cfg := sweeper.Config{
		Interval: interval, Batch: 3, Lease: 30 * time.Second,
		Retry: retry.Policy{Backoff: []time.Duration{10 * time.Second}, MaxRetries: 2},
	}
	configure(&cfg)
	b.Sweeper = sweeper.New(cfg, b.table, b.gate, b.keys, b.stream, route, b.broker, b.metrics, b.reckoning, zerolog.New(b.log))
	return b
}

// pass makes one pass that must not fail.
func (b *bench) pass(t *testing.T) sweeper.Result {
	t.Helper()
	r, err := b.Pass(t.Context())
	require.NoError(t, err)
	return r
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}
