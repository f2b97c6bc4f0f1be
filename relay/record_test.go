package relay

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/sweeper"
	"example.com/outbox-relay/test/bubble"
)

// pendingRows is a table of which what is pending and not deferred matters. Its first answers of each kind may fail.
type pendingRows struct {
	allRows
	mu       sync.Mutex
	ids      []uint64
	last     uint64
	failing  map[string]int // so many more times
	asked    []string
	deferred []int // how many rows at once
}

func (r *pendingRows) ask(what string) error {
	r.asked = append(r.asked, what)
	if r.failing[what] > 0 {
		r.failing[what]--
		return errBroken
	}
	return nil
}

func (r *pendingRows) LastIDs(context.Context) (map[outbox.Table]uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return map[outbox.Table]uint64{testTable: r.last}, r.ask("last ids")
}

func (r *pendingRows) Unrecorded(_ context.Context, last map[outbox.Table]uint64, limit int) ([]outbox.Ref, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ask("unrecorded"); err != nil {
		return nil, err
	}
	var refs []outbox.Ref
	for _, id := range r.ids {
		if id <= last[testTable] && len(refs) < limit {
			row := rowOf(id, "orders", "k")
			refs = append(refs, row.Ref())
		}
	}
	return refs, nil
}

func (r *pendingRows) Defer(_ context.Context, refs []outbox.Ref) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ask("defer"); err != nil {
		return err
	}
	r.ids = slices.DeleteFunc(r.ids, func(id uint64) bool {
		return slices.ContainsFunc(refs, func(ref outbox.Ref) bool { return ref.ID == id })
	})
	r.deferred = append(r.deferred, len(refs))
	return nil
}

// recordBench is a session that only records, with a rebuilt topic and a saver that waits for it.
type recordBench struct {
	*session
	rows *pendingRows
}

func newRecordBench(pending uint64) *recordBench {
	b := &recordBench{rows: &pendingRows{last: pending, failing: map[string]int{}}}
	for id := range pending {
		b.rows.ids = append(b.rows.ids, id+1)
	}
	b.session = &session{
		log: zerolog.Nop(), flow: newFlowBench().flow, alarm: sweeper.NewAlarm(),
		streaming: streaming{saver: &saver{saving: saving{held: true}, now: make(chan struct{}, 1)}},
	}
	b.flow.lines.Rebuild([]string{"orders"}, nil, time.Time{})
	return b
}

// requireRecorded checks whether the position may be saved and the topics be probed.
func (b *recordBench) requireRecorded(t *testing.T, recorded bool) {
	t.Helper()
	require.Equal(t, !recorded, b.saver.holding())
	require.Equal(t, recorded, slices.Contains(b.flow.lines.Work(time.Now()).Probe, "orders"))
}

func TestRecordDefersAllThatWasPendingAtTheStart(t *testing.T) {
	t.Parallel()
	b := newRecordBench(2*recordBatch + 1)
	b.rows.ids = append(b.rows.ids, b.rows.last+1) // committed since: the stream brings it
	b.requireRecorded(t, false)
	require.NoError(t, b.record(t.Context(), b.rows))
	require.Equal(t, []int{recordBatch, recordBatch, 1}, b.rows.deferred)
	require.Equal(t, []uint64{b.rows.last + 1}, b.rows.ids)
	b.requireRecorded(t, true)
	require.Len(t, b.saver.now, 1, "saved at once")
}

// Each of its statements is repeated until it works, and nothing counts as recorded before.
func TestRecordWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"last ids", "unrecorded", "defer"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b := newRecordBench(3)
				b.rows.failing[what] = 20
				began := time.Now()
				ended := make(chan error, 1)
				go func() { ended <- b.record(t.Context(), b.rows) }()
				advance(t, 5*time.Second)
				require.Empty(t, ended)
				b.requireRecorded(t, false)
				require.NoError(t, <-ended)
				require.Greater(t, time.Since(began), 5*time.Second)
				require.Equal(t, []int{3}, b.rows.deferred)
				b.requireRecorded(t, true)
			})
		})
	}
}

// The last ids are read once: with later ones recording would run after the writers for ever.
func TestRecordReadsTheLastIDsOnce(t *testing.T) {
	t.Parallel()
	b := newRecordBench(2 * recordBatch)
	require.NoError(t, b.record(t.Context(), b.rows))
	require.Equal(t, []string{"last ids", "unrecorded", "defer", "unrecorded", "defer", "unrecorded"}, b.rows.asked)
}

// A session that ends meanwhile has not recorded all: the position must not be saved.
func TestRecordEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newRecordBench(3)
		b.rows.failing["defer"] = 1000
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, b.record(ctx, b.rows), context.DeadlineExceeded)
		b.requireRecorded(t, false)
	})
}
