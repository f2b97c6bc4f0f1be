package outbox

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIDsAreUUIDsOfVersion7(t *testing.T) {
	t.Parallel()
	var s sequence
	now := time.Date(2026, 11, 29, 12, 34, 56, 789_500_000, time.UTC)
	text := s.next(now)
	id, err := uuid.Parse(text)
	require.NoError(t, err)
	assert.Equal(t, uuid.Version(7), id.Version())
	assert.Equal(t, uuid.RFC4122, id.Variant())
	assert.Equal(t, id.String(), text, "the canonical spelling")
	seconds, nanos := id.Time().UnixTime()
	assert.Equal(t, now.UnixMilli(), time.Unix(seconds, nanos).UnixMilli())
	assert.Equal(t, "-7800-", text[13:19], "half of a millisecond is 0x800 ticks")
	assert.NotEqual(t, text[19:], s.next(now)[19:], "the rest is random")
}

// TestIDsGrow: within a millisecond, from one millisecond into the next, and when the clock is put back.
func TestIDsGrow(t *testing.T) {
	t.Parallel()
	var s sequence
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var ids []string
	for range 3 * ticksPerMillisecond {
		ids = append(ids, s.next(now))
	}
	for _, step := range []time.Duration{-time.Hour, time.Nanosecond, time.Millisecond, time.Hour} {
		now = now.Add(step)
		ids = append(ids, s.next(now))
	}
	assert.True(t, slices.IsSorted(ids))
	assert.Len(t, slices.Compact(slices.Clone(ids)), len(ids))
}

func TestIDsAreUniqueAmongGoroutines(t *testing.T) {
	t.Parallel()
	var (
		s   sequence
		all [4][]string
		wg  sync.WaitGroup
	)
	for i := range all {
		wg.Go(func() {
			for range 2000 {
				all[i] = append(all[i], s.next(time.Now()))
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, ids := range all {
		assert.True(t, slices.IsSorted(ids))
		for _, id := range ids {
			assert.False(t, seen[id[:18]], "the ticks alone tell them apart")
			seen[id[:18]] = true
		}
	}
}

func TestDueTextIsNeverEarly(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("", 8*3600)
	for at, want := range map[time.Time]string{
		time.Date(2027, 1, 1, 8, 0, 0, 0, east):            "2027-01-01 00:00:00",
		time.Date(2027, 1, 1, 8, 0, 0, 1, east):            "2027-01-01 00:00:01",
		time.Date(2027, 1, 1, 8, 0, 59, 999_999_999, east): "2027-01-01 00:01:00",
	} {
		assert.Equal(t, want, dueText(at))
	}
}

func TestTraceParentsThatCanNotBeWritten(t *testing.T) {
	t.Parallel()
	assert.True(t, soundTraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
	for _, s := range []string{"", "a b", "a\n", "ä", "\x7f", "00-" + string(make([]byte, 62))} {
		assert.False(t, soundTraceParent(s), "%q", s)
	}
}
