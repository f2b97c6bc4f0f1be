package relay

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/test/bubble"
)

// trackerModel is the tracker said naively: all transactions ever begun, and how many rows of each are not settled.
type trackerModel struct {
	ends []position.End
	left []int
}

// safe returns how many transactions from the start are settled.
func (m *trackerModel) safe() int {
	n := 0
	for n < len(m.left) && m.left[n] == 0 {
		n++
	}
	return n
}

func TestTrackerAgreesWithTheNaiveModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tracker := NewTracker(startPosition)
		var model trackerModel
		var open []*Txn // by transaction
		var taken []position.End
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				rows := rapid.OneOf(rapid.Just(0), rapid.IntRange(1, 3), rapid.IntRange(1000, 100_000)).Draw(t, "rows")
				end := endAt(len(model.ends) + 1)
				open = append(open, tracker.Begin(end, rows))
				model.ends = append(model.ends, end)
				model.left = append(model.left, rows)
			},
			"settle": func(t *rapid.T) {
				var candidates []int
				for i, left := range model.left {
					if left > 0 {
						candidates = append(candidates, i)
					}
				}
				if len(candidates) == 0 {
					return
				}
				i := rapid.SampledFrom(candidates).Draw(t, "transaction")
				n := model.left[i]
				if rapid.Bool().Draw(t, "partly") {
					n = rapid.IntRange(1, n).Draw(t, "n")
				}
				open[i].Settle(n)
				model.left[i] -= n
			},
			"take": func(*rapid.T) { taken = append(taken, tracker.TakeSafe()...) },
			"": func(t *rapid.T) {
				safe := model.safe()
				if tracker.Open() != len(model.ends)-safe {
					t.Fatalf("%d transactions are open, want %d", tracker.Open(), len(model.ends)-safe)
				}
				checkReached(t, tracker, model.ends, safe)
			},
		})
		taken = append(taken, tracker.TakeSafe()...)
		// Every end, in order, once: it never goes back, never stops between two ends, never passes an unsettled one.
		require.True(t, slices.Equal(model.ends[:model.safe()], taken), "got %v", taken)
	})
}

// checkReached asks WaitSettled about the last end that is safe and about the first that is not.
func checkReached(t *rapid.T, tracker *Tracker, ends []position.End, safe int) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if safe > 0 {
		if err := tracker.WaitSettled(gone, ends[safe-1].File, ends[safe-1].Pos); err != nil {
			t.Fatalf("the last safe end is not settled: %v", err)
		}
	}
	if safe < len(ends) {
		// One byte into the first transaction that is not settled is enough to wait.
		if err := tracker.WaitSettled(gone, ends[safe].File, ends[safe].Pos-99); err == nil {
			t.Fatalf("%s counts as settled", ends[safe])
		}
	}
}

func TestWaitSettledWakesOnlyWhenItsPlaceIsPassed(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		tracker := NewTracker(startPosition)
		first, second := tracker.Begin(endAt(1), 1), tracker.Begin(endAt(2), 2)
		woken := make(chan error, 1)
		go func() { woken <- tracker.WaitSettled(t.Context(), endAt(2).File, endAt(2).Pos) }()
		for _, settle := range []func(){
			func() { second.Settle(1) },
			func() { first.Settle(1) }, // moves the safe place, not far enough
			func() { tracker.Begin(endAt(3), 0) },
		} {
			settle()
			synctest.Wait()
			require.Empty(t, woken)
		}
		second.Settle(1)
		synctest.Wait()
		require.Len(t, woken, 1)
		require.NoError(t, <-woken)
	})
}

func TestWaitSettledAtTheStartDoesNotWait(t *testing.T) {
	t.Parallel()
	tracker := NewTracker(startPosition)
	require.NoError(t, tracker.WaitSettled(t.Context(), startPosition.File, startPosition.Pos))
}

func TestWaitSettledEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		tracker := NewTracker(startPosition)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, tracker.WaitSettled(ctx, endAt(1).File, endAt(1).Pos), context.DeadlineExceeded)
	})
}

func TestWaitSettledCrossesBinlogFiles(t *testing.T) {
	t.Parallel()
	tracker := NewTracker(position.Position{File: "binlog.999999", Pos: 4})
	tracker.Begin(position.End{File: "binlog.1000000", Pos: 4}, 0)
	require.NoError(t, tracker.WaitSettled(t.Context(), "binlog.999999", 1<<40))
}

func TestWaitSettledFailsWhenTheBinlogWasRenamed(t *testing.T) {
	t.Parallel()
	tracker := NewTracker(startPosition)
	require.ErrorContains(t, tracker.WaitSettled(t.Context(), "other.000001", 4), "no order")
}

func TestTrackerFreesWhatIsSettled(t *testing.T) {
	t.Parallel()
	tracker := NewTracker(startPosition)
	kept := tracker.Begin(endAt(0), 1)
	var settled []weak.Pointer[Txn]
	for i := range 100 {
		txn := tracker.Begin(endAt(i+1), 1)
		txn.Settle(1)
		settled = append(settled, weak.Make(txn))
	}
	kept.Settle(1)
	last := tracker.Begin(endAt(200), 1)
	assert.Eventually(t, func() bool {
		runtime.GC()
		for _, p := range settled {
			if p.Value() != nil {
				return false
			}
		}
		return true
	}, 5*time.Second, time.Millisecond)
	runtime.KeepAlive(last)
	require.Equal(t, 1, tracker.Open())
	require.Len(t, tracker.TakeSafe(), 101)
	require.Empty(t, tracker.TakeSafe())
}

// What the gate has is admitted, settled or not; it wakes who waits for that, and not who waits for settling.
func TestWaitAdmitted(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		tracker := NewTracker(startPosition)
		require.NoError(t, tracker.WaitAdmitted(t.Context(), startPosition.File, startPosition.Pos))
		txn := tracker.Begin(endAt(1), 1)
		admitted, settled := make(chan error, 1), make(chan error, 1)
		go func() { admitted <- tracker.WaitAdmitted(t.Context(), endAt(2).File, endAt(2).Pos) }()
		go func() { settled <- tracker.WaitSettled(t.Context(), endAt(1).File, endAt(1).Pos) }()
		synctest.Wait()
		tracker.Admitted(endAt(1))
		synctest.Wait()
		require.Empty(t, admitted)
		tracker.Admitted(endAt(2))
		require.NoError(t, <-admitted)
		require.Empty(t, settled)
		txn.Settle(1)
		require.NoError(t, <-settled)
	})
}
