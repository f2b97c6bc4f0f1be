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
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/sweeper"
)

// lines are relay.Lines without their memory: the states of topics, and one key.
type lines struct {
	*gate
	keys *keys
}

func (l lines) Work(now time.Time) order.Work {
	w := l.work(now)
	w.Release = l.keys.release()
	return w
}

func (l lines) Begin(name order.Name) order.Way {
	if name.Key != 0 {
		delete(l.keys.ready, name.Key)
		return order.Defer
	}
	return l.begin(name.Topic)
}

func (l lines) Report(name order.Name, o order.Outcome) {
	if name.Key != 0 {
		l.keys.report(name, o)
		return
	}
	switch o.Kind {
	case order.Closes:
		l.Close(name.Topic, o.Reason, o.Wait)
	case order.Later:
		l.wait(name.Topic, o.Wait)
		l.set(name.Topic, l.state(name.Topic), "later")
	case order.Drains, order.Empty:
		l.drain(name.Topic, o.Kind == order.Drains)
	case order.GivesUp:
		l.unhold(name.Topic)
	case order.Looked, order.Blocked:
	}
}

func (l lines) Hold(_ context.Context, name order.Name) bool {
	if name.Key != 0 {
		return l.keys.hold()
	}
	return l.hold(name.Topic)
}

func (l lines) Held(order.Name) map[outbox.Ref]bool { return l.held }

func (l lines) Open(_ context.Context, name order.Name) (bool, error) {
	switch {
	case name.Key != 0:
		return l.keys.handBack(), nil
	case l.state(name.Topic) == "probing":
		l.set(name.Topic, "open", "acked")
		return true, l.ending
	}
	return l.handBack(name.Topic), nil
}

// gate is the topics' states, with a journal.
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

func (g *gate) work(now time.Time) (w order.Work) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, state := range g.states {
		switch left := g.probeAt[name].Sub(now); {
		case state == "closed" && left <= 0:
			w.Probe = append(w.Probe, name)
		case state == "closed" && (w.Wait == 0 || left < w.Wait):
			w.Wait = left
		case state == "draining":
			w.Drain = append(w.Drain, name)
		}
	}
	return w
}

func (g *gate) begin(topic string) order.Way {
	switch g.state(topic) {
	case "":
		g.set(topic, "probing", "begin")
		return order.Probe
	case "open":
		return order.Send
	}
	return order.Defer
}

func (g *gate) Close(topic, _ string, wait time.Duration) {
	g.wait(topic, wait)
	g.set(topic, "closed", "close")
}

func (g *gate) wait(topic string, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.probeAt == nil {
		g.probeAt = make(map[string]time.Time)
	}
	g.probeAt[topic] = time.Now().Add(d)
}

func (g *gate) unhold(topic string) {
	if g.state(topic) == "handing" {
		g.set(topic, "draining", "unhold")
	}
}

func (g *gate) drain(topic string, acked bool) {
	note := "drain"
	if !acked {
		note = "drain unacked"
	}
	g.set(topic, "draining", note)
}

func (g *gate) hold(topic string) bool {
	if g.early {
		return false
	}
	g.set(topic, "handing", "hold")
	if g.onHold != nil {
		g.onHold()
	}
	return true
}

func (g *gate) handBack(topic string) bool {
	if g.full > 0 {
		g.full--
		g.set(topic, "draining", "give up")
		return false
	}
	g.set(topic, "open", "hand back")
	return true
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
	*sweeper.Alarm
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
		Alarm: sweeper.NewAlarm(), table: newTable(), gate: &gate{states: map[string]string{}}, keys: &keys{}, stream: &stream{}, log: &logBuffer{},
		broker: &broker{gone: make(chan struct{}), tail: map[string]bool{}}, metrics: metrics.New("test").Source("test"),
	}
	b.reckoning = sweeper.NewReckoning(b.metrics)
	cfg := sweeper.Config{
		Interval: interval, Batch: 3, Lease: 30 * time.Second,
		Retry: retry.Policy{Backoff: []time.Duration{10 * time.Second}, MaxRetries: 2},
	}
	configure(&cfg)
	b.Sweeper = sweeper.New(cfg, b.parts(route))
	return b
}

// parts are the fakes.
func (b *bench) parts(route *router.Router) sweeper.Parts {
	return sweeper.Parts{
		Tables: sweeper.TablesOf(b.table), Lines: lines{gate: b.gate, keys: b.keys}, Letters: b.keys, Stream: b.stream, Router: route,
		Out: b.broker, Broker: b.broker, Alarm: b.Alarm, Metrics: b.metrics, Reckoning: b.reckoning, Log: zerolog.New(b.log),
	}
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
