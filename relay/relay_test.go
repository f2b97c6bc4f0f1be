package relay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/bubble"
)

func TestRelayDeliversInOrder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p := start(t, w, 0)
		for i := range 500 {
			w.commit(true, fmt.Sprintf("topic-%d", i%3), "a", "b", "a")
			pause(t.Context(), time.Millisecond)
		}
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		assert.Zero(t, w.verdict(t))
	})
}

func TestRelayRestartsCleanlyWithoutDuplicates(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(2)
		for range 10 {
			p := start(t, w, 0)
			for range 100 {
				w.commit(true, "topic", "a", "b", "c")
				pause(t.Context(), time.Millisecond)
			}
			require.NoError(t, p.stop())
		}
		p := start(t, w, 0)
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		assert.Zero(t, w.verdict(t))
	})
}

func TestTopicThatAppearsIsDeliveredInOrder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(3)
		w.setTopic("late", false, nil)
		p := start(t, w, 0)
		for i := range 3000 {
			w.commit(true, "late", "a", "b")
			w.commit(true, "other", "a", "b")
			if i == 1500 {
				w.setTopic("late", true, nil)
			}
			pause(t.Context(), 10*time.Millisecond)
		}
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		assert.Zero(t, w.verdict(t))
	})
}

func TestRowsThatWereNeverLoggedAreSwept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(4)
		p := start(t, w, 0)
		for range 50 {
			w.commit(true, "topic", "logged")
			w.commit(false, "topic", "unlogged")
			w.commit(false, "never-streamed", "unlogged")
			pause(t.Context(), 10*time.Millisecond)
		}
		w.settle(t, 2*time.Minute)
		require.NoError(t, p.stop())
		assert.Zero(t, w.verdict(t))
	})
}

func (w *world) setKafka(up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kafkaUp = up
}

func (w *world) setSQL(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sqlDown = down
}

func (w *world) sqlIsDown() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sqlDown
}
