package retry_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/test/bubble"
)

func TestDoublingRangesDoubleUpToTheMost(t *testing.T) {
	t.Parallel()
	p := retry.Doubling(100*time.Millisecond, time.Second)
	for attempt, want := range [][2]time.Duration{{100, 200}, {200, 400}, {400, 800}, {500, 1000}, {500, 1000}} {
		assert.InDelta(t, float64(want[0]*time.Millisecond), float64(p.Delay(attempt+1, constant(0))), 1e3, "attempt %d", attempt)
		assert.InDelta(t, float64(want[1]*time.Millisecond), float64(p.Delay(attempt+1, constant(math.Nextafter(1, 0)))), 1e3, "attempt %d", attempt)
	}
	assert.False(t, p.Spent(math.MaxInt))
}

func TestDoublingStaysWithinAnyBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		least := time.Duration(rapid.Int64().Draw(t, "least"))
		most := time.Duration(rapid.Int64().Draw(t, "most"))
		p := retry.Doubling(least, most)
		require.NoError(t, p.Validate())
		low := min(max(least, time.Millisecond), math.MaxInt64/4)
		d := p.Delay(rapid.IntRange(1, 80).Draw(t, "attempt"), constant(rapid.Float64Range(0, 0.999).Draw(t, "random")))
		// A nanosecond or two are lost to whole numbers.
		if d+2 < low || d-2 > max(most, 2*low) {
			t.Fatalf("delay %s is outside %s to %s", d, low, max(most, 2*low))
		}
	})
}

func TestAttemptsBeginAgainAfterReset(t *testing.T) {
	t.Parallel()
	a := retry.Policy{Backoff: []time.Duration{time.Second, time.Minute}}.Attempts()
	assert.Equal(t, time.Second, a.Next())
	assert.Equal(t, time.Minute, a.Next())
	assert.Equal(t, time.Minute, a.Next())
	a.Reset()
	assert.Equal(t, time.Second, a.Next())
}

var errAway = errors.New("away")

func TestUntilTriesUntilItWorks(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		p := retry.Policy{Backoff: []time.Duration{time.Second, time.Minute}, MaxRetries: 5}
		begun, calls := time.Now(), 0
		var noted []error
		err := p.Until(t.Context(), func(err error) { noted = append(noted, err) }, func(context.Context) error {
			if calls++; calls < 3 {
				return errAway
			}
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, time.Minute+time.Second, time.Since(begun))
		assert.Equal(t, []error{errAway, errAway, nil}, noted)
	})
}

func TestUntilGivesUpWhenRetriesAreSpent(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		calls := 0
		err := retry.Policy{Backoff: []time.Duration{time.Second}, MaxRetries: 2}.Until(t.Context(), nil, func(context.Context) error {
			calls++
			return errAway
		})
		require.ErrorIs(t, err, errAway)
		assert.Equal(t, 3, calls, "the first attempt and two retries")
	})
}

func TestUntilReturnsAFinalErrorAtOnceAndUnmarked(t *testing.T) {
	t.Parallel()
	noted := 0
	err := retry.Doubling(time.Hour, time.Hour).Until(t.Context(), func(error) { noted++ }, func(context.Context) error { return retry.Final(errAway) })
	assert.Equal(t, errAway, err)
	assert.Zero(t, noted)
	assert.NoError(t, retry.Final(nil))
}

func TestUntilEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var noted []error
		err := retry.Doubling(time.Hour, time.Hour).Until(ctx, func(err error) { noted = append(noted, err) }, func(context.Context) error { return errAway })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Len(t, noted, 1)
		// What fails because the context has ended is no trouble of the thing that is tried.
		err = retry.Doubling(time.Hour, time.Hour).Until(ctx, func(err error) { noted = append(noted, err) }, func(context.Context) error { return errAway })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Len(t, noted, 1)
	})
}
