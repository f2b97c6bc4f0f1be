package relay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/bubble"
)

// A topic that comes after a restart is noticed as one that comes before it is: what waits for it need not wait for
// its next try, which may be far.
func TestTopicThatComesAfterARestart(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		cfg := manner{}.config()
		cfg.Retry.Backoff, cfg.Sweep.Retry.Backoff = []time.Duration{time.Hour}, []time.Duration{time.Hour}
		w.setTopic("t", false, nil)
		p := startWith(t, w, 0, cfg)
		pause(t.Context(), time.Second)
		first := w.commitOne("t", "k")
		pause(t.Context(), 5*time.Second)
		second := w.commitOne("t", "k")
		pause(t.Context(), 5*time.Second)
		require.NoError(t, p.stop())
		p = startWith(t, w, 0, cfg)
		pause(t.Context(), 10*time.Second)
		require.Negative(t, w.position(first))
		w.setTopic("t", true, nil)
		pause(t.Context(), 5*time.Second)
		require.GreaterOrEqual(t, w.position(first), 0, "it waits for the hour to end")
		require.Less(t, w.position(first), w.position(second))
		require.NoError(t, p.stop())
		require.Zero(t, w.judge(t, manner{}.ordered))
	})
}
