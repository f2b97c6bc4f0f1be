package retry_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/outbox-relay/retry"
)

// usual is the pattern's policy, the configuration's default.
var usual = retry.Policy{
	Backoff: []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}, Jitter: 0.2, MaxRetries: 16,
}

func constant(v float64) func() float64 { return func() float64 { return v } }

func TestDelayFollowsTheListAndRepeatsTheLast(t *testing.T) {
	t.Parallel()
	p := usual
	for attempt, want := range map[int]time.Duration{
		-3: 10 * time.Second, 0: 10 * time.Second, 1: 10 * time.Second, 2: 30 * time.Second, 3: time.Minute,
		4: 5 * time.Minute, 5: 5 * time.Minute, math.MaxInt: 5 * time.Minute,
	} {
		assert.Equal(t, want, p.Delay(attempt, nil), "attempt %d", attempt)
	}
}

func TestDelayIsSpreadByJitter(t *testing.T) {
	t.Parallel()
	p := retry.Policy{Backoff: []time.Duration{10 * time.Second}, Jitter: 0.2, MaxRetries: 1}
	assert.Equal(t, 8*time.Second, p.Delay(1, constant(0)))
	assert.Equal(t, 10*time.Second, p.Delay(1, constant(0.5)))
	assert.InDelta(t, float64(12*time.Second), float64(p.Delay(1, constant(1))), 1e3)
}

func TestDelayNeverWrapsAround(t *testing.T) {
	t.Parallel()
	p := retry.Policy{Backoff: []time.Duration{math.MaxInt64}, Jitter: 1, MaxRetries: 1}
	assert.Equal(t, time.Duration(math.MaxInt64), p.Delay(1, constant(0.999)))
	assert.Equal(t, time.Duration(math.MaxInt64), p.Longest())
}

func TestDelayOfAnEmptyPolicyIsNoHotLoop(t *testing.T) {
	t.Parallel()
	assert.Equal(t, time.Second, retry.Policy{}.Delay(1, nil))
	assert.Equal(t, time.Second, retry.Policy{}.Longest())
}

func TestDelayStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := retry.Policy{
			Backoff: rapid.SliceOfN(rapid.Map(rapid.Int64Range(1, int64(24*time.Hour)),
				func(n int64) time.Duration { return time.Duration(n) }), 1, 6).Draw(t, "backoff"),
			Jitter:     rapid.Float64Range(0, 1).Draw(t, "jitter"),
			MaxRetries: 1,
		}
		require.NoError(t, p.Validate())
		d := p.Delay(rapid.Int().Draw(t, "attempt"), constant(rapid.Float64Range(0, 0.999999).Draw(t, "random")))
		if d < 0 || d > p.Longest() {
			t.Fatalf("delay %s is outside 0 to %s", d, p.Longest())
		}
	})
}

func TestSpent(t *testing.T) {
	t.Parallel()
	p := retry.Policy{MaxRetries: 16}
	assert.False(t, p.Spent(16))
	assert.True(t, p.Spent(17))
}

func TestValidateReportsEveryProblem(t *testing.T) {
	t.Parallel()
	require.NoError(t, usual.Validate())
	err := retry.Policy{Backoff: []time.Duration{time.Second, -1}, Jitter: math.NaN()}.Validate()
	require.Error(t, err)
	for _, part := range []string{"backoff[1]", "jitter", "max_retries"} {
		require.ErrorContains(t, err, part)
	}
	require.ErrorContains(t, retry.Policy{Jitter: 1.5, MaxRetries: 1}.Validate(), "backoff is empty")
}

func TestClassNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "unreachable", retry.Unreachable.String())
	assert.Equal(t, "refused", retry.Refused.String())
	assert.Equal(t, "never", retry.Never.String())
	assert.Equal(t, "unknown", retry.Class(99).String())
}
