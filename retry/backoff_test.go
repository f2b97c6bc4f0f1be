package retry_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"example.com/outbox-relay/retry"
)

func TestBackoffDoublesItsBoundUpToTheMaximum(t *testing.T) {
	t.Parallel()
	// With a random value of almost 1 the delay is the bound itself.
	b := retry.NewBackoff(100*time.Millisecond, time.Second, constant(math.Nextafter(1, 0)))
	for i, want := range []time.Duration{200, 400, 800, 1000, 1000} {
		assert.InDelta(t, float64(want*time.Millisecond), float64(b.Next()), 1e3, "attempt %d", i)
	}
	b.Reset()
	assert.InDelta(t, float64(200*time.Millisecond), float64(b.Next()), 1e3)
}

func TestBackoffIsNeverBelowTheMinimum(t *testing.T) {
	t.Parallel()
	b := retry.NewBackoff(100*time.Millisecond, time.Second, constant(0))
	for range 10 {
		assert.Equal(t, 100*time.Millisecond, b.Next())
	}
}

func TestBackoffStaysWithinAnyBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		least := time.Duration(rapid.Int64().Draw(t, "least"))
		most := time.Duration(rapid.Int64().Draw(t, "most"))
		b := retry.NewBackoff(least, most, constant(rapid.Float64Range(0, 0.999).Draw(t, "random")))
		low := max(least, time.Millisecond)
		for range 80 {
			if d := b.Next(); d < low || d > max(most, low) {
				t.Fatalf("delay %s is outside %s to %s", d, low, max(most, low))
			}
		}
	})
}

func TestBackoffSpreadsWithoutInjectedRandomness(t *testing.T) {
	t.Parallel()
	b := retry.NewBackoff(time.Millisecond, time.Hour, nil)
	seen := map[time.Duration]bool{}
	for range 50 {
		seen[b.Next()] = true
	}
	assert.Greater(t, len(seen), 10)
}
