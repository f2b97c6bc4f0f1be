package sweeper_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/bubble"
)

// silent adds pending rows of an open topic that nobody has given to the sweeper.
func (b *bench) silent(topic string, ids ...uint64) {
	b.gate.mu.Lock()
	if b.gate.states[topic] == "" {
		b.gate.states[topic] = "open"
	}
	b.gate.mu.Unlock()
	b.table.mu.Lock()
	defer b.table.mu.Unlock()
	b.table.put(topic, outbox.Pending, ids...)
	for _, id := range ids {
		b.table.rows[id].next = time.Time{}
	}
}

// reasons returns what was counted, without zeros.
func (b *bench) reasons(t *testing.T) map[string]int {
	t.Helper()
	counted := map[string]int{}
	for _, reason := range words.Missed() {
		if n := int(value(t, b.metrics.StreamMissed.WithLabelValues(reason))); n > 0 {
			counted[reason] = n
		}
	}
	totals, sum := b.reckoning.Totals(), 0
	for reason, n := range counted {
		require.EqualValues(t, n, totals.Reasons[reason])
		sum += n
	}
	require.EqualValues(t, sum, totals.Recovered)
	require.EqualValues(t, counted[words.MissedUnexplained], totals.Unexplained)
	return counted
}

func refsOf(ids ...uint64) []outbox.Ref {
	refs := make([]outbox.Ref, len(ids))
	for i, id := range ids {
		refs[i] = outbox.Ref{Table: messages, ID: id}
	}
	return refs
}

func TestRowsNobodyToldOfAreUnexplained(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start(t)
		b.silent("orders", 1, 2, 3, 4)
		wait(t, interval)
		require.Len(t, b.broker.published(), 4)
		require.Equal(t, map[string]int{words.MissedUnexplained: 4}, b.reasons(t))
	})
}

// What is the sweeper's by design never counts as missed.
func TestDesignedRowsAreCountedApart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["open"], b.gate.states["reopened"] = "open", "draining"
	b.table.put("open", outbox.Failed, 1)
	b.table.put("open", outbox.Pending, 2) // its time has come
	b.table.put("reopened", outbox.Pending, 3, 4)
	b.table.put("reopened", outbox.Failed, 5)
	b.pass(t)
	b.pass(t)
	require.Len(t, b.broker.published(), 5)
	require.Empty(t, b.reasons(t))
	for reason, n := range map[string]int{words.SweptRetry: 2, words.SweptDelayed: 1, words.SweptDeferred: 2} {
		require.InDelta(t, n, value(t, b.metrics.SweepSent.WithLabelValues(reason)), 0, reason)
	}
}

// A row whose topic is refused is given back, and comes again as deferred: it was missed once.
func TestMissedRowCountsOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.silent("orders", 1, 2, 3)
		b.broker.refuse = refuse(errRefused, "m1")
		b.start(t)
		wait(t, 5*time.Minute)
		require.Equal(t, map[string]int{words.MissedUnexplained: 3}, b.reasons(t))
	})
}

// Whatever the reader says about rows that it leaves to the sweeper, none of them counts as unexplained: the alert
// for foreign writers watches that.
func TestEveryReasonOfTheReaderIsCounted(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{
		words.MissedXA, words.MissedColumns, words.MissedGone, words.MissedDecode, words.MissedLarge, words.MissedStatement, words.MissedIncident,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.silent("orders", 1)
			b.reckoning.Number(reason, 1)
			b.pass(t)
			b.pass(t)
			require.Equal(t, map[string]int{reason: 1}, b.reasons(t))
		})
	}
}

func TestReasonsThatTheStreamTells(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		tell func(b *bench)
		want map[string]int
	}{
		{
			"rows by name", func(b *bench) { b.reckoning.Rows(words.MissedUpdate, refsOf(2, 4)) },
			map[string]int{words.MissedUpdate: 2, words.MissedUnexplained: 2},
		},
		{"rows by number", func(b *bench) { b.reckoning.Number("xa", 3) }, map[string]int{"xa": 3, words.MissedUnexplained: 1}},
		{"nobody knows how many", func(b *bench) { b.reckoning.Some("statement") }, map[string]int{"statement": 4}},
		{
			"two of them", func(b *bench) { b.reckoning.Number("columns", 1); b.reckoning.Some(words.MissedDDL) },
			map[string]int{"columns": 1, words.MissedDDL: 3},
		},
		{
			"nothing", func(b *bench) { b.reckoning.Number("xa", 0); b.reckoning.Rows(words.MissedUpdate, nil) },
			map[string]int{words.MissedUnexplained: 4},
		},
		{"more than can be named", func(b *bench) {
			for i := range uint64(21_000) {
				b.reckoning.Rows(words.MissedUpdate, refsOf(100+i))
			}
		}, map[string]int{words.MissedUpdate: 4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.start(t)
				b.silent("orders", 1, 2, 3, 4)
				tc.tell(b)
				b.Expect()
				wait(t, 200*time.Millisecond)
				require.Len(t, b.broker.published(), 4)
				require.Equal(t, tc.want, b.reasons(t))
			})
		})
	}
}

// A reason explains rows until a pass, long enough after it, has found nothing more. What comes later is its own.
func TestReasonsEnd(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(b *bench){
		"by name": func(b *bench) { b.reckoning.Rows(words.MissedUpdate, refsOf(1, 7)) },
		"number":  func(b *bench) { b.reckoning.Number("xa", 100) },
		"some":    func(b *bench) { b.reckoning.Some("statement") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.start(t)
				tell(b)
				b.Expect()
				wait(t, 2*time.Second)
				b.silent("orders", 1) // readable only now
				wait(t, 3*time.Second)
				require.Len(t, b.broker.published(), 1, "the last look finds it")
				require.NotContains(t, b.reasons(t), words.MissedUnexplained)
				wait(t, interval)
				b.silent("orders", 7)
				wait(t, interval)
				require.Equal(t, 1, b.reasons(t)[words.MissedUnexplained])
			})
		})
	}
}

// Rows of a closed topic are not looked at until it opens: their reason waits for them.
func TestReasonsWaitForClosedTopics(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.gate.states["later"] = "probing"
		b.start(t)
		b.silent("later", 1, 2)
		b.reckoning.Some("statement")
		b.Expect()
		wait(t, time.Minute)
		require.Empty(t, b.broker.published())
		b.silent("orders", 3)
		wait(t, interval)
		require.Equal(t, map[string]int{words.MissedUnexplained: 1}, b.reasons(t), "it explains no other topic's rows")
		b.gate.mu.Lock()
		b.gate.states["later"] = "open"
		b.gate.mu.Unlock()
		wait(t, interval)
		require.Equal(t, map[string]int{words.MissedUnexplained: 1, "statement": 2}, b.reasons(t))
		b.silent("later", 4)
		wait(t, 2*interval)
		require.Equal(t, map[string]int{words.MissedUnexplained: 2, "statement": 2}, b.reasons(t))
	})
}

// What was pending when the stream began may have been told to the process before.
func TestRowsFromBeforeTheStart(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.reckoning.Begin()
		b.silent("orders", 1, 2, 3, 4, 5) // more than a batch
		b.start(t)
		require.Equal(t, map[string]int{words.MissedStart: 5}, b.reasons(t))
		b.silent("orders", 6)
		wait(t, interval)
		require.Equal(t, map[string]int{words.MissedStart: 5, words.MissedUnexplained: 1}, b.reasons(t))
	})
}

// A pass that fails has claimed rows of other topics as well, which look delayed afterwards.
func TestClaimedRowsCountAlsoWhenThePassFails(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.silent("a", 1)
		b.silent("b", 2, 3)
		b.broker.refuse = func(string) error {
			b.table.setFail(errClosed) // what was sent can't be marked
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		b.stream.onPassed = cancel
		_, err := b.Pass(ctx)
		require.Error(t, err)
		require.Equal(t, []string{"m1"}, b.broker.published())
		require.Equal(t, map[string]int{words.MissedUnexplained: 3}, b.reasons(t))
	})
}

// TestExpectLooksAgain: the binlog tells of a row before it can be read.
func TestExpectLooksAgain(t *testing.T) {
	t.Parallel()
	for i, late := range []time.Duration{0, 200 * time.Millisecond, 900 * time.Millisecond, 4900 * time.Millisecond} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.start(t)
				wait(t, time.Second)
				b.Expect()
				wait(t, late)
				b.silent("orders", uint64(i)+1)
				wait(t, 4100*time.Millisecond)
				require.Len(t, b.broker.published(), 1)
			})
		})
	}
}

// A thousand updates a second make no thousand passes.
func TestExpectDoesNotTurnTheLoopHot(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start(t)
		for range 1000 {
			b.Expect()
			wait(t, time.Millisecond)
		}
		require.LessOrEqual(t, b.rounds(t, words.RoundDone), 12)
		wait(t, 10*time.Second)
		require.LessOrEqual(t, b.rounds(t, words.RoundDone), 16, "and they end")
	})
}
