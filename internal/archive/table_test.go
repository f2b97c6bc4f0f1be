package archive

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/archive/history"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// fakeRow is a row with a status to archive.
type fakeRow struct {
	id         uint64
	old, young bool // update_time long ago; create_time not so
}

// fakeRows is one table in memory, with one lane.
type fakeRows struct {
	mu      sync.Mutex
	table   outbox.Table
	rows    []fakeRow // the row with id n is at n-1
	gone    map[uint64]bool
	history []uint64
	batches []int
	looks   int
	locked  map[uint64]bool
	follows int
	fail    error
	failing func() error // of Follow
}

var errFake = errors.New("the server is away")

func newFake(n int, row func(id uint64) fakeRow) *fakeRows {
	f := &fakeRows{table: outbox.Table{Database: "app", Name: "m"}, locked: map[uint64]bool{}, gone: map[uint64]bool{}}
	for id := uint64(1); id <= uint64(n); id++ { //nolint:gosec // positive
		r := row(id)
		r.id = id
		f.rows = append(f.rows, r)
	}
	return f
}

func (f *fakeRows) Tables() []outbox.Table { return []outbox.Table{f.table} }

func (f *fakeRows) Follow(context.Context, outbox.Table) error {
	f.follows++
	if f.failing != nil {
		return f.failing()
	}
	return nil
}

func (f *fakeRows) Lanes(outbox.Table) int { return 1 }

func (f *fakeRows) Look(_ context.Context, _ outbox.Table, _ int, from store.Spot, limit int) (history.Looked, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	looked := history.Looked{Young: true, Next: from}
	for _, r := range f.rows[from.ID:] {
		if f.gone[r.id] {
			continue
		}
		if looked.Rows == limit {
			break
		}
		looked.Rows++
		looked.Next = store.SpotAt(r.id, "")
		looked.Young = looked.Young && r.young
		if r.old {
			looked.IDs = append(looked.IDs, r.id)
		}
	}
	return looked, f.fail
}

func (f *fakeRows) Move(_ context.Context, _ outbox.Table, ids []uint64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return 0, f.fail
	}
	f.batches = append(f.batches, len(ids))
	moved := 0
	for _, id := range ids {
		if !f.gone[id] && !f.locked[id] {
			f.gone[id] = true
			f.history = append(f.history, id)
			moved++
		}
	}
	return moved, nil
}

func (f *fakeRows) left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.rows) - len(f.gone)
}

func newArchiver(t *testing.T, f *fakeRows, replica Replica) (*Archiver, *metrics.Source) {
	t.Helper()
	m := metrics.New("test").Source("s")
	a := New(Config{Interval: 1, Batch: 400}, f, replica, m, zerolog.New(zerolog.NewTestWriter(t)))
	return a, m
}

// value reads a counter or a gauge.
func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var read dto.Metric
	require.NoError(t, m.Write(&read))
	return read.GetCounter().GetValue() + read.GetGauge().GetValue()
}
