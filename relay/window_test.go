package relay

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/outbox-relay/test/bubble"
)

func TestWindowBoundsRowsAndBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		maxRows, maxBytes := rapid.IntRange(1, 5).Draw(t, "rows"), rapid.Int64Range(1, 100).Draw(t, "bytes")
		w := newWindow(maxRows, maxBytes)
		var sizes []int64
		var sum int64
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				size := rapid.Int64Range(0, 150).Draw(t, "size")
				fits := len(sizes) == 0 || len(sizes) < maxRows && sum+size <= maxBytes
				ok, freed := w.tryAcquire(size)
				require.Equal(t, fits, ok)
				require.Equal(t, fits, freed == nil)
				if ok {
					sizes, sum = append(sizes, size), sum+size
				}
			},
			"release": func(*rapid.T) {
				if len(sizes) > 0 {
					w.release(1, sizes[0])
					sum -= sizes[0]
					sizes = sizes[1:]
				}
			},
			"": func(t *rapid.T) {
				rows, bytes := w.used()
				require.Equal(t, len(sizes), rows)
				require.Equal(t, sum, bytes)
			},
		})
	})
}

func TestWindowTakesAnOversizedRowAlone(t *testing.T) {
	t.Parallel()
	w := newWindow(10, 100)
	require.NoError(t, w.acquire(t.Context(), 1<<30))
	ok, _ := w.tryAcquire(0)
	require.False(t, ok, "nothing beside it")
	w.release(1, 1<<30)
	require.NoError(t, w.acquire(t.Context(), 1))
	ok, _ = w.tryAcquire(1 << 30)
	require.False(t, ok, "it waits to be alone")
}

func TestReleaseWakesEachWaiterThatFits(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWindow(2, 100)
		require.NoError(t, w.acquire(t.Context(), 100))
		var got atomic.Int32
		for range 3 {
			go func() {
				if w.acquire(t.Context(), 40) == nil {
					got.Add(1)
				}
			}()
		}
		synctest.Wait()
		require.Zero(t, got.Load())
		w.release(1, 100)
		synctest.Wait()
		require.EqualValues(t, 2, got.Load())
		w.release(1, 40)
		synctest.Wait()
		require.EqualValues(t, 3, got.Load())
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWindow(1, 1)
		require.NoError(t, w.acquire(t.Context(), 0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, w.acquire(ctx, 0), context.DeadlineExceeded)
		rows, _ := w.used()
		require.Equal(t, 1, rows, "who gave up has taken nothing")
	})
}

// TestWindowUnderContention is for the race detector, and for lost wake-ups: it would hang.
func TestWindowUnderContention(t *testing.T) {
	t.Parallel()
	const maxRows, maxBytes = 5, 300
	w := newWindow(maxRows, maxBytes)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 500 {
				size := rand.Int64N(maxBytes)
				if err := w.acquire(t.Context(), size); err != nil {
					t.Error(err)
					return
				}
				rows, bytes := w.used()
				assert.LessOrEqual(t, rows, maxRows)
				assert.LessOrEqual(t, bytes, int64(maxBytes))
				w.release(1, size)
			}
		})
	}
	group.Wait()
	rows, bytes := w.used()
	assert.Zero(t, rows)
	assert.Zero(t, bytes)
}
