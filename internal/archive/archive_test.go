package archive

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/words"
)

// oldUntil makes the first n rows old, and all others as young as can be.
func oldUntil(n uint64) func(uint64) fakeRow {
	return func(id uint64) fakeRow { return fakeRow{old: id <= n, young: id > n} }
}

func TestPassMovesWhatIsOldAndLeavesTheYoungUnread(t *testing.T) {
	t.Parallel()
	f := newFake(60_000, oldUntil(2500))
	a, m := newArchiver(t, f, nil)
	r, err := a.Pass(t.Context(), false, nil)
	require.NoError(t, err)
	assert.Equal(t, int64(2500), r.Moved)
	assert.Equal(t, map[string]int64{"app.m": 2500}, map[string]int64{"app.m": r.Tables[f.table]})
	assert.Equal(t, 57_500, f.left())
	assert.LessOrEqual(t, f.looks, 3+youngEnd+prospect, "the young ones are not all looked at")
	assert.LessOrEqual(t, slices.Max(f.batches), 400)
	assert.Equal(t, 1, f.follows, "the history is compared once a pass, and by Move")
	assert.InDelta(t, 2500, value(t, m.Archive.Rows.WithLabelValues(words.ArchiveMoved)), 0)
}

func TestDryRunMovesNothing(t *testing.T) {
	t.Parallel()
	f := newFake(3000, oldUntil(1234))
	a, _ := newArchiver(t, f, nil)
	r, err := a.Pass(t.Context(), true, nil)
	require.NoError(t, err)
	assert.Equal(t, int64(1234), r.Moved)
	assert.Empty(t, f.history)
	assert.Zero(t, f.follows, "nor does it make a history")
}

// Many rows were reported consumed a moment ago: they are first and not old. Those behind them are found all the same.
func TestRowsReportedLateHideNoOthers(t *testing.T) {
	t.Parallel()
	f := newFake(30_000, func(id uint64) fakeRow { return fakeRow{old: id > 20_000} })
	a, _ := newArchiver(t, f, nil)
	r, err := a.Pass(t.Context(), false, nil)
	require.NoError(t, err)
	assert.Equal(t, int64(10_000), r.Moved)
}

// Where ids do not follow the time, passes get everywhere, a bounded way each.
func TestIDsWithoutOrderAreAllFoundInTime(t *testing.T) {
	t.Parallel()
	// Old rows are islands in a sea of young ones.
	f := newFake(120_000, func(id uint64) fakeRow { return fakeRow{old: id%30_000 < 500, young: id%30_000 >= 500} })
	want := 0
	for _, r := range f.rows {
		if r.old {
			want++
		}
	}
	a, _ := newArchiver(t, f, nil)
	passes := 0
	for ; len(f.history) < want && passes < 20; passes++ {
		before := f.looks
		_, err := a.Pass(t.Context(), false, nil)
		require.NoError(t, err)
		assert.LessOrEqual(t, f.looks-before, 120)
	}
	assert.Len(t, f.history, want, "after %d passes", passes)
}

func TestRowsThatAreLockedAreLeftForTheNextPass(t *testing.T) {
	t.Parallel()
	f := newFake(100, oldUntil(100))
	f.locked[7] = true
	a, m := newArchiver(t, f, nil)
	r, err := a.Pass(t.Context(), false, nil)
	require.NoError(t, err)
	assert.Equal(t, Result{Moved: 99, Looked: 100, Skipped: 1, Tables: r.Tables}, r)
	assert.InDelta(t, 1, value(t, m.Archive.Rows.WithLabelValues(words.ArchivePassedOver)), 0)
	delete(f.locked, 7)
	r, err = a.Pass(t.Context(), false, nil)
	require.NoError(t, err)
	assert.Equal(t, int64(1), r.Moved)
}

func TestAHistoryThatCannotFollowStopsItsTable(t *testing.T) {
	t.Parallel()
	f := newFake(100, oldUntil(100))
	f.failing = func() error { return errFake }
	a, m := newArchiver(t, f, nil)
	_, err := a.Pass(t.Context(), false, nil)
	require.ErrorIs(t, err, errFake)
	assert.Equal(t, 100, f.left())
	assert.InDelta(t, 1, value(t, m.Archive.Paused.WithLabelValues(words.PausedError)), 0)
	f.failing = nil
	_, err = a.Pass(t.Context(), false, nil)
	require.NoError(t, err)
	assert.Zero(t, f.left())
	assert.Zero(t, value(t, m.Archive.Paused.WithLabelValues(words.PausedError)))
}

func TestRunGoesOnAfterFailuresAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := newFake(10, oldUntil(10))
	f.fail = errFake
	a, _ := newArchiver(t, f, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	require.Eventually(t, func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.looks > 2 }, 10*time.Second, time.Millisecond)
	f.mu.Lock()
	f.fail = nil
	f.mu.Unlock()
	require.Eventually(t, func() bool { return f.left() == 0 }, 10*time.Second, time.Millisecond)
	cancel()
	<-ended
}

// slowReplica is behind until it is let go.
type slowReplica struct {
	behind chan struct{}
	asked  chan struct{}
}

func (r *slowReplica) Applied(ctx context.Context) error {
	select {
	case r.asked <- struct{}{}:
	default:
	}
	select {
	case <-r.behind:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestNothingIsMovedWhileTheReplicaIsBehind(t *testing.T) {
	t.Parallel()
	f := newFake(100, oldUntil(100))
	r := &slowReplica{behind: make(chan struct{}), asked: make(chan struct{}, 1)}
	a, _ := newArchiver(t, f, r)
	ended := make(chan error, 1)
	go func() { _, err := a.Pass(t.Context(), false, nil); ended <- err }()
	<-r.asked
	assert.Equal(t, 100, f.left())
	close(r.behind)
	require.NoError(t, <-ended)
	assert.Zero(t, f.left())
}

type brokenReplica struct{ calls int }

func (r *brokenReplica) Applied(context.Context) error {
	r.calls++
	return errors.New("does not replicate")
}

func TestAReplicaThatDoesNotReplicateKeepsEverythingInPlace(t *testing.T) {
	t.Parallel()
	f := newFake(100, oldUntil(100))
	a, m := newArchiver(t, f, &brokenReplica{})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := a.Pass(ctx, false, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, 100, f.left())
	assert.Zero(t, value(t, m.Archive.Paused.WithLabelValues(words.PausedReplica)), "no longer than it lasts")
}

func TestPace(t *testing.T) {
	t.Parallel()
	p := newPace(500)
	assert.Equal(t, firstBatch, p.size)
	took := func(n int, fixed, row time.Duration) {
		for range n {
			p.took(p.size, fixed+time.Duration(p.size)*row)
			assert.LessOrEqual(t, p.pause, longestPause)
			assert.GreaterOrEqual(t, p.size, leastBatch)
		}
	}
	took(40, time.Millisecond, 10*time.Microsecond)
	assert.Equal(t, 500, p.size, "a quick server gets the largest batches")
	assert.Equal(t, leastPause, p.pause)
	took(10, time.Millisecond, 25*time.Microsecond)
	assert.InDelta(t, 360, p.size, 2, "a slower one as many as it takes in the time")
	assert.Equal(t, leastPause, p.pause)
	assert.False(t, p.busy)
	took(10, 100*time.Millisecond, 20*time.Microsecond)
	assert.Equal(t, firstBatch, p.size, "one that answers late no smaller than helps")
	assert.Equal(t, 312*time.Millisecond, p.pause, "and long pauses")
	assert.True(t, p.busy)
	took(10, 300*time.Millisecond, time.Millisecond)
	assert.Equal(t, leastBatch, p.size, "a busy one the smallest")
	assert.Equal(t, 930*time.Millisecond, p.pause, "and longer ones")
	assert.True(t, p.busy)
	took(1, time.Hour, 0)
	assert.Equal(t, longestPause, p.pause)
	took(40, time.Millisecond, 10*time.Microsecond)
	assert.Equal(t, 500, p.size, "when that is over all is as before")
	assert.False(t, p.busy)
	assert.Equal(t, 5, newPace(5).size)
}
