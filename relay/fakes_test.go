package relay

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// The white-box tests' neighbours: each does only what its test looks at. (world is the honest whole.)

// allRows is what a store has for the relay itself.
type allRows interface {
	Marks
	Backlog
	Letters
	Survey
}

// tables are the roles of a fake that need not sweep.
func tables(rows allRows) Tables {
	return Tables{Marks: rows, Lookup: rows, Backlog: rows, Letters: rows, Survey: rows}
}

// fakeRows writes down what is done to the table. fail is asked first, by operation.
type fakeRows struct {
	allRows
	mu    sync.Mutex
	calls []string
	fail  func(operation string) error
	found map[outbox.Ref]store.Found
}

func (r *fakeRows) note(operation string, refs ...outbox.Ref) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(operation); err != nil {
			return err
		}
	}
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.MsgID
	}
	r.calls = append(r.calls, operation+" "+strings.Join(names, " "))
	return nil
}

func (r *fakeRows) done() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.calls...)
}

func (r *fakeRows) MarkSent(_ context.Context, refs []outbox.Ref) (int64, error) {
	return int64(len(refs)), r.note("sent", refs...)
}

func (r *fakeRows) MarkFailed(_ context.Context, failures []store.Failure) ([]outbox.Ref, error) {
	return nil, r.note("failed", refsOf(failures)...)
}

func (r *fakeRows) MarkDead(_ context.Context, failures []store.Failure) error {
	return r.note("dead", refsOf(failures)...)
}

func (r *fakeRows) Defer(_ context.Context, refs []outbox.Ref) error {
	return r.note("deferred", refs...)
}

func (r *fakeRows) Lookup(_ context.Context, refs []outbox.Ref) (map[outbox.Ref]store.Found, error) {
	return r.found, r.note("lookup", refs...)
}

func refsOf(failures []store.Failure) []outbox.Ref {
	refs := make([]outbox.Ref, len(failures))
	for i := range failures {
		refs[i] = failures[i].Ref
	}
	return refs
}

// fakeCheckpoints keeps the records that were saved, as far as fail lets it.
type fakeCheckpoints struct {
	Checkpoints
	mu    sync.Mutex
	saved []checkpoint.Record
	fail  error
}

func (c *fakeCheckpoints) Save(_ context.Context, _ string, rec checkpoint.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	c.saved = append(c.saved, rec)
	return nil
}

func (c *fakeCheckpoints) setFail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = err
}

func (c *fakeCheckpoints) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.saved)
}

// fakeProducer keeps what it was handed; the test gives the results.
type fakeProducer struct {
	mu     sync.Mutex
	handed []kafka.Result // Token only
	err    error          // what it refuses records with
	room   int            // how many it takes before that
}

func (p *fakeProducer) Send(_ context.Context, _ *router.Record, token any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil && p.room == 0 {
		return p.err
	}
	p.room--
	p.handed = append(p.handed, kafka.Result{Token: token})
	return nil
}

func (p *fakeProducer) Close(context.Context) error { return nil }

// items returns the messages that were handed over, in order.
func (p *fakeProducer) items() []*item {
	p.mu.Lock()
	defer p.mu.Unlock()
	var items []*item
	for _, h := range p.handed {
		if it, ok := h.Token.(*item); ok {
			items = append(items, it)
		}
	}
	return items
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.buf.String(), text)
}

func (b *logBuffer) logger() zerolog.Logger { return zerolog.New(b) }

func newMetrics() *metrics.Source { return metrics.New("test").Source("test") }

// value reads a counter or a gauge.
func value(t *testing.T, c prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, c.Write(&m))
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

var testTable = outbox.Table{Database: "app", Name: "local_message"}

func rowOf(id uint64, topic, key string) outbox.Row {
	return outbox.Row{
		Table: testTable, ID: id, MsgID: fmt.Sprintf("m%d", id), Topic: topic, Content: []byte(`{}`), Key: []byte(key),
	}
}

// endAt is the end of the n-th transaction of a server without GTIDs.
func endAt(n int) position.End { return position.End{File: "binlog.000001", Pos: uint64(4 + 100*n)} }

var startPosition = position.Position{Flavor: position.MySQL, Server: "server", File: "binlog.000001", Pos: 4}

// itemOf is a message of one row's transaction, on its way to topic.
func itemOf(tracker *Tracker, id uint64, t *line, key string) *item {
	name := t.Name().Topic
	row := rowOf(id, name, key)
	return &item{
		ref: row.Ref(), txn: tracker.Begin(endAt(int(id)), 1), topic: t, place: place{dest: name}, source: source{origin: words.OriginStream},
		rec: &router.Record{Topic: name, Key: []byte(key), Value: row.Content},
	}
}

func ids(items []*item) []string {
	names := make([]string, len(items))
	for i, it := range items {
		names[i] = it.ref.MsgID
	}
	return names
}
