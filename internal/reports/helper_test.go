package reports_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/reports"
	"example.com/outbox-relay/internal/reports/acks"
	"example.com/outbox-relay/outbox"
)

// tables is a database that remembers what was reported. fail is asked before each report.
type tables struct {
	mu      sync.Mutex
	fail    func(r report.Report) error
	taken   []string // group/topic:id
	calls   int
	settled int
	oldest  func(*acks.UnreportedScan) (*acks.SentMessage, bool, error)
}

func (s *tables) Consume(_ context.Context, _ acks.Rules, r report.Report) (report.Counts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.fail != nil {
		if err := s.fail(r); err != nil {
			return report.Counts{}, err
		}
	}
	for _, id := range r.MsgIDs {
		s.taken = append(s.taken, r.Group+"/"+r.Topic+":"+id)
	}
	return report.Counts{Consumed: len(r.MsgIDs)}, nil
}

func (s *tables) Settle(context.Context, acks.Rules, acks.Cursor) (report.Counts, acks.Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled++
	return report.Counts{Consumed: 1}, acks.Cursor{}, nil
}

func (s *tables) OldestUnreported(_ context.Context, scan *acks.UnreportedScan, _ int) (*acks.SentMessage, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.oldest(scan)
}

func (s *tables) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.taken)
	slices.Sort(all)
	return all
}

// topic is the topic of reports: what is committed is not returned again to the next reader.
type topic struct {
	mu        sync.Mutex
	records   [][]byte
	committed int
	failing   error // of Fetch
	noCommit  error
	opened    int
	closed    int
}

func (t *topic) open() (reports.Reader, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opened++
	return &reader{topic: t, next: t.committed}, nil
}

type reader struct {
	topic *topic
	next  int
}

func (r *reader) Fetch(ctx context.Context) ([][]byte, int64, error) {
	r.topic.mu.Lock()
	values, err := r.topic.records[r.next:], r.topic.failing
	r.next = len(r.topic.records)
	r.topic.mu.Unlock()
	if err != nil || len(values) > 0 {
		return values, 0, err
	}
	timer := time.NewTimer(500 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil, 0, nil
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

func (r *reader) Commit(context.Context) error {
	r.topic.mu.Lock()
	defer r.topic.mu.Unlock()
	if r.topic.noCommit != nil {
		return r.topic.noCommit
	}
	r.topic.committed = r.next
	return nil
}

func (r *reader) Close() error {
	r.topic.mu.Lock()
	defer r.topic.mu.Unlock()
	r.topic.closed++
	return nil
}

func (t *topic) change(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	do()
}

// later lets the bubble's clock pass, and waits until everybody waits.
func later(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the bubble's clock
	synctest.Wait()
}

type readPast func(group string, row *outbox.Row, moment time.Time) (bool, error)

func (f readPast) ReadPast(_ context.Context, group string, row *outbox.Row, moment time.Time) (bool, error) {
	return f(group, row, moment)
}

// stage runs a service in a bubble.
type stage struct {
	*reports.Service
	t       *testing.T
	rows    *tables
	topic   *topic
	metrics *metrics.Registry
	stop    context.CancelFunc
	done    chan struct{}
}

func newStage(t *testing.T, change func(*reports.Config)) *stage {
	t.Helper()
	s := &stage{t: t, rows: &tables{}, topic: &topic{}, metrics: metrics.New("test"), done: make(chan struct{})}
	cfg := reports.Config{Source: "shop", Store: s.rows, OpenReader: s.topic.open, Metrics: s.metrics.Source("shop")}
	if change != nil {
		change(&cfg)
	}
	s.Service = reports.New(cfg, zerolog.New(zerolog.NewTestWriter(t)))
	return s
}

func (s *stage) start() {
	ctx, stop := context.WithCancel(s.t.Context())
	s.stop = stop
	go func() {
		defer close(s.done)
		s.Run(ctx)
	}()
	synctest.Wait()
}

func (s *stage) end() {
	s.stop()
	<-s.done
}

// series returns a metric's values by their labels.
func (s *stage) series(name string) map[string]float64 {
	s.t.Helper()
	families, err := s.metrics.Gatherer().Gather()
	require.NoError(s.t, err)
	found := map[string]float64{}
	for _, f := range families {
		if f.GetName() != metrics.Namespace+"_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			found[labels(m)] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return found
}

func labels(m *dto.Metric) string {
	var values []string
	for _, l := range m.GetLabel() {
		if l.GetName() != "source" {
			values = append(values, l.GetValue())
		}
	}
	return strings.Join(values, " ")
}

func encoded(t *testing.T, r report.Report) []byte {
	t.Helper()
	value, err := r.Encode()
	require.NoError(t, err)
	return value
}
