package relay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

// markerBench is a marker with a batch of 3 and a delay of 10 ms that runs in its own goroutine.
type markerBench struct {
	*marker
	rows    *fakeRows
	log     *logBuffer
	mu      sync.Mutex
	settled []string
	lost    error // why nothing may be written any more
	ended   chan error
}

const markDelay = 10 * time.Millisecond

func startMarker(ctx context.Context) *markerBench {
	b := &markerBench{rows: &fakeRows{}, log: &logBuffer{}, ended: make(chan error, 1)}
	b.marker = newMarker(b.rows, markerConfig{
		batch: 3, delay: markDelay, observe: func(time.Duration) {}, check: func() error { return b.lost },
		policy: retry.Policy{Backoff: []time.Duration{time.Minute}, MaxRetries: 7},
	}, b.settle, b.log.logger())
	go func() { b.ended <- b.run(ctx) }()
	return b
}

func (b *markerBench) settle(verdicts []verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range verdicts {
		b.settled = append(b.settled, v.it.ref.MsgID)
	}
}

func (b *markerBench) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.settled)
}

func (b *markerBench) give(what outcome, from, to int) {
	for id := from; id <= to; id++ {
		row := rowOf(uint64(id), "orders", "k")
		b.add(verdict{it: &item{ref: row.Ref()}, outcome: what, text: "because"})
	}
}

func numbered(from, to int) []string {
	var names []string
	for id := from; id <= to; id++ {
		names = append(names, fmt.Sprintf("m%d", id))
	}
	return names
}

func TestMarkerWritesAFullBatchAtOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := startMarker(t.Context())
		b.give(outcomeSent, 1, 7)
		synctest.Wait()
		require.Equal(t, []string{"sent m1 m2 m3", "sent m4 m5 m6"}, b.rows.done())
		require.Equal(t, 1, b.depth())
		advance(t, markDelay)
		require.Equal(t, "sent m7", b.rows.done()[2])
		require.Equal(t, numbered(1, 7), b.names())
	})
}

func TestMarkerWritesAfterItsDelay(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := startMarker(t.Context())
		b.give(outcomeSent, 1, 1)
		advance(t, markDelay/2)
		b.give(outcomeSent, 2, 2) // does not start the delay anew
		advance(t, markDelay/2-1)
		require.Empty(t, b.rows.done())
		advance(t, 1)
		require.Equal(t, []string{"sent m1 m2"}, b.rows.done())
		b.give(outcomeSent, 3, 3)
		advance(t, markDelay)
		require.Equal(t, "sent m3", b.rows.done()[1])
	})
}

func TestMarkerWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := startMarker(t.Context())
		var down atomic.Bool
		down.Store(true)
		b.rows.mu.Lock()
		b.rows.fail = func(string) error {
			if down.Load() {
				return store.ErrUnreachable
			}
			return nil
		}
		b.rows.mu.Unlock()
		b.give(outcomeSent, 1, 4)
		advance(t, 10*time.Minute)
		require.Empty(t, b.names(), "nothing is settled that is not written")
		require.ErrorIs(t, b.err(), store.ErrUnreachable)
		require.Equal(t, 4, b.depth(), "what is being written counts")
		var waiting []string
		b.waiting(func(v *verdict) { waiting = append(waiting, v.it.ref.MsgID) })
		require.Equal(t, numbered(1, 4), waiting)
		down.Store(false)
		advance(t, 5*time.Second) // the longest backoff
		require.Equal(t, numbered(1, 4), b.names())
		require.NoError(t, b.err())
		require.Zero(t, b.depth())
		require.Equal(t, 1, b.log.count("rows can't be marked"), "an outage is told once")
		require.Equal(t, 1, b.log.count("rows are marked again"))
	})
}

func TestMarkerWritesFailedLast(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := startMarker(t.Context())
		b.cfg.batch = 4
		b.give(outcomeFailed, 1, 1)
		b.give(outcomeDeferred, 2, 2)
		b.give(outcomeDead, 3, 3)
		b.give(outcomeSent, 4, 4)
		synctest.Wait()
		require.Equal(t, []string{"sent m4", "deferred m2", "dead m3", "failed m1"}, b.rows.done())
		require.Equal(t, numbered(1, 4), b.names(), "settled in the order they came")
	})
}

// A retry counted twice would spend it for a failure of the database, so what counts up comes after all that may fail.
func TestMarkerCountsAFailureOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := startMarker(t.Context())
		broken := 3
		b.rows.mu.Lock()
		b.rows.fail = func(operation string) error {
			if operation == "dead" && broken > 0 {
				broken--
				return store.ErrBusy
			}
			return nil
		}
		b.rows.mu.Unlock()
		b.give(outcomeFailed, 1, 1)
		b.give(outcomeDead, 2, 3)
		advance(t, time.Minute)
		require.Equal(t, []string{"dead m2 m3", "failed m1"}, b.rows.done())
	})
}

func TestMarkerFinishWritesAll(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 3, 10} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b := startMarker(t.Context())
				b.give(outcomeSent, 1, n)
				b.finish()
				synctest.Wait() // without the delay
				require.NoError(t, <-b.ended)
				require.Equal(t, numbered(1, n), b.names())
			})
		})
	}
}

func TestMarkerAbandons(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before int
		down   bool
	}{{"Idle", 0, false}, {"Lingering", 1, false}, {"Retrying", 3, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				b := startMarker(ctx)
				if tt.down {
					b.rows.mu.Lock()
					b.rows.fail = func(string) error { return store.ErrUnreachable }
					b.rows.mu.Unlock()
				}
				b.give(outcomeSent, 1, tt.before)
				synctest.Wait()
				cancel()
				require.ErrorIs(t, <-b.ended, context.Canceled)
				require.Empty(t, b.names())
			})
		})
	}
}

func TestMarkerWritesNothingWithoutTheLock(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := startMarker(t.Context())
		b.lost = ErrLockLost
		b.give(outcomeSent, 1, 3)
		require.ErrorIs(t, <-b.ended, ErrLockLost)
		require.Empty(t, b.rows.done())
		require.Empty(t, b.names())
	})
}

// TestMarkerUnderContention adds from many sides and finishes while most of it waits: each outcome is settled once.
func TestMarkerUnderContention(t *testing.T) {
	t.Parallel()
	rows := &fakeRows{}
	var settled atomic.Int32
	m := newMarker(rows, markerConfig{batch: 7, delay: time.Microsecond, observe: func(time.Duration) {}, check: func() error { return nil }},
		func(v []verdict) { settled.Add(int32(len(v))) }, zerolog.Nop())
	ended := make(chan error, 1)
	go func() { ended <- m.run(t.Context()) }()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for id := range 1000 {
				row := rowOf(uint64(id), "orders", "k")
				m.add(verdict{it: &item{ref: row.Ref()}})
				m.waiting(func(*verdict) {})
			}
		})
	}
	group.Wait()
	m.finish()
	require.NoError(t, <-ended)
	require.EqualValues(t, 4000, settled.Load())
	require.Equal(t, 4000, strings.Count(strings.Join(rows.done(), " "), "m"))
}
