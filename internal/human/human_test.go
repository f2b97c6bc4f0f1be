package human_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/internal/human"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": 0, "5ms": 5 * time.Millisecond, "3s": 3 * time.Second, "4m10s": 250 * time.Second, "4m": 4 * time.Minute,
		"5h7m": 5*time.Hour + 7*time.Minute, "2d3h": 51 * time.Hour, "-3s": -3 * time.Second, "1d": 24 * time.Hour, "1m": 59*time.Second + 700*time.Millisecond, "1h": time.Hour,
	} {
		assert.Equal(t, want, human.Duration(d))
	}
	assert.Equal(t, "100,000+", human.Count(100_000, 100_000))
	assert.Equal(t, "99,999", human.Count(99_999, 100_000))
	assert.Equal(t, "1 row", human.Plural(1, "row"))
	assert.Equal(t, "0 rows", human.Plural(0, "row"))
	assert.Equal(t, "ab...", human.Cut("abcdef", 5))
	assert.Equal(t, "äöü", human.Cut("äöü", 3))
	assert.Empty(t, human.Time(time.Time{}))
	assert.InDelta(t, 1.5, human.Seconds(1500*time.Millisecond), 0)
}
