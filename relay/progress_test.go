package relay_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/sweeper"
	"example.com/outbox-relay/test/bubble"
)

// Each test here is an interleaving in which something once stood still.

// A busy topic is handed back while each deferring UPDATE takes its time: holding has to be given up, and the sweeper
// must not wait for a stream that goes on deferring.
func TestHandBackOfABusyTopic(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.setTopic("t", false, nil)
		w.trouble.do(func(trouble *trouble) { trouble.takes = map[operation]time.Duration{opDefer: 60 * time.Millisecond} })
		cfg := testConfig()
		cfg.Unmarked, cfg.MarkBatch, cfg.Sweep.Batch, cfg.Sweep.Interval = 1000, 1000, 500, time.Second
		p := startWith(t, w, 0, cfg)
		pause(t.Context(), time.Second)
		load, stop := context.WithCancel(t.Context())
		var loading sync.WaitGroup
		loading.Go(func() {
			for i := 0; load.Err() == nil; i++ {
				pause(load, 4*time.Millisecond)
				w.commitOne("t", fmt.Sprint(i%5))
			}
		})
		pause(t.Context(), 2*time.Second)
		w.setTopic("t", true, nil)
		pause(t.Context(), 3*time.Second)
		delayed := w.commitDelayed("other", "z", time.Now().Add(2*time.Second))
		pause(t.Context(), 10*time.Second)
		sent, last, now := w.position(delayed), p.relay.Status().LastSweep, time.Now()
		stop()
		loading.Wait()
		w.settle(t, 10*time.Minute)
		require.NoError(t, p.stop())
		w.verdict(t)
		require.GreaterOrEqual(t, sent, 0, "another topic's delayed message waits for it")
		require.Less(t, now.Sub(last), 5*time.Second, "the sweeper stood still")
	})
}

// A partition loses its leader under a record: what goes to other topics waits neither in the stream nor in the
// sweeper.
func TestTopicWithoutALeaderHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p := start(t, w, 0)
		pause(t.Context(), time.Second)
		w.commitOne("stuck", "a")
		w.commitOne("good", "a")
		w.settle(t, time.Minute)
		w.trouble.stick("stuck", true)
		w.commitOne("stuck", "a")
		delayed := w.commitDelayed("good", "d", time.Now().Add(3*time.Second))
		pause(t.Context(), time.Minute)
		require.GreaterOrEqual(t, w.position(delayed), 0, "a delayed message waits behind it")
		for range 100 {
			w.commitOne("stuck", "a")
		}
		good := w.commitOne("good", "a")
		pause(t.Context(), time.Minute)
		require.GreaterOrEqual(t, w.position(good), 0, "a message waits behind it")
		w.trouble.stick("stuck", false)
		w.settle(t, 10*time.Minute)
		require.NoError(t, p.stop())
		w.verdict(t)
	})
}

// Kafka goes silent after a lone sweep has handed rows over: the sweep ends with its context all the same.
func TestSweepOnceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.commit(false, "t", "a", "a", "a", "a", "a")
		w.trouble.stick("t", true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		_, err := newRelay(t, w, 0, testConfig()).SweepOnce(ctx, time.Second, func(sweeper.Result) bool { return false })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(began), 20*time.Second)
	})
}

// A topic is closed for a moment while the sweeper sleeps until its next interval: it is woken, and tries the topic
// when the topic's row is due.
func TestClosedTopicWakesTheSweeper(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{"Unreachable": sarama.ErrNotEnoughReplicas, "Refused": sarama.ErrTopicAuthorizationFailed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(1)
				p := start(t, w, 0)
				pause(t.Context(), time.Second)
				w.setTopic("t", true, refusal)
				w.commitOne("t", "k")
				pause(t.Context(), 500*time.Millisecond)
				w.setTopic("t", true, nil)
				repaired := time.Now()
				w.settle(t, time.Minute)
				took := time.Since(repaired)
				require.NoError(t, p.stop())
				require.Less(t, took, 6*time.Second)
			})
		})
	}
}
