package trouble_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
	"example.com/outbox-relay/test/bubble"
)

var errAway = errors.New("away")

func newLog(after time.Duration) (*trouble.Log, func() []string) {
	var out bytes.Buffer
	l := trouble.New(zerolog.New(&out), trouble.Texts{Fails: "marking fails", Works: "marking works again", Level: zerolog.ErrorLevel, After: after})
	return l, func() []string {
		text := strings.TrimSpace(out.String())
		out.Reset()
		if text == "" {
			return nil
		}
		return strings.Split(text, "\n")
	}
}

func TestBeginAndEndAreLoggedOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		l, lines := newLog(0)
		l.Note(nil)
		assert.Empty(t, lines(), "what works is no news")
		for range 30 {
			l.Note(errAway)
			require.NoError(t, retry.Wait(t.Context(), time.Second))
		}
		assert.Equal(t, []string{`{"level":"error","error":"away","message":"marking fails"}`}, lines())
		require.ErrorIs(t, l.Err(), errAway)
		require.EqualError(t, l.Err(), "for 30s: away")
		l.Note(nil)
		l.Note(nil)
		assert.Equal(t, []string{`{"level":"info","failures":30,"after":30000,"message":"marking works again"}`}, lines())
		require.NoError(t, l.Err())
	})
}

func TestAnotherCauseIsLoggedButNotEachOfMany(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		l, lines := newLog(0)
		for i := range 150 { // five minutes, each time another text
			l.Note(fmt.Errorf("dial from port %d", i))
			require.NoError(t, retry.Wait(t.Context(), 2*time.Second))
		}
		got := lines()
		assert.Len(t, got, 5)
		assert.Contains(t, got[1], `"error":"dial from port 30","failures":31,"for":60000`)
	})
}

func TestWhatLastsIsLoggedRarely(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		l, lines := newLog(0)
		for range 61 {
			l.Note(errAway)
			require.NoError(t, retry.Wait(t.Context(), time.Minute))
		}
		assert.Len(t, lines(), 7, "at the beginning and each ten minutes of an hour")
	})
}

func TestWhatIsOverSoonIsNotLogged(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		l, lines := newLog(5 * time.Second)
		l.Note(errAway)
		require.NoError(t, retry.Wait(t.Context(), 4*time.Second))
		l.Note(errAway)
		require.NoError(t, l.Err())
		l.Note(nil)
		assert.Empty(t, lines())
		l.Note(errAway)
		require.NoError(t, retry.Wait(t.Context(), 5*time.Second))
		require.NoError(t, l.Err(), "a single failure that nobody has tried again since")
		l.Note(errAway)
		require.Error(t, l.Err())
		l.Note(nil)
		assert.Len(t, lines(), 2)
	})
}

func TestUntilNotesEachAttempt(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		l, lines := newLog(0)
		calls := 0
		require.NoError(t, l.Until(t.Context(), retry.Doubling(time.Second, time.Second), func(context.Context) error {
			if calls++; calls < 4 {
				return errAway
			}
			return nil
		}))
		assert.Len(t, lines(), 2)
	})
}
