package relay_test

import (
	"flag"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRelayDeliversInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
	synctest.Test(t, func(t *testing.T) {
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
	synctest.Test(t, func(t *testing.T) {
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
	synctest.Test(t, func(t *testing.T) {
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

// faultRuns is how many stories TestRelayUnderFaults tries, each about a second; a nightly run wants 1000.
var faultRuns = flag.Int("relay.faults", 6, "stories for TestRelayUnderFaults to try")

// checkTimes is rapid.Check with a number of checks of its own. rapid knows one for all tests: no other may run beside it,
// so the caller must not be parallel.
func checkTimes(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	require.NoError(t, checks.Set(strconv.Itoa(n)))
	defer func() { require.NoError(t, checks.Set(before)) }()
	rapid.Check(t, property)
}

// TestRelayUnderFaults is the promise under everything that can happen at once: topics that come and go, Kafka and the
// database away, crashes and clean restarts. After the last fault heals everything is delivered, in order per key.
func TestRelayUnderFaults(t *testing.T) {
	checkTimes(t, *faultRuns, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		steps := rapid.SliceOfN(rapid.IntRange(0, 11), 5, 60).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) { underFaults(t, newWorld(seed), steps) })
	})
}

// underFaults is a story of one fault after the other.
func underFaults(t *testing.T, w *world, steps []int) {
	generation := 0
	p := start(t, w, generation)
	var crashed sync.WaitGroup
	stopWriting := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { w.write(stopWriting) })
	crashes := 0
	for _, step := range steps {
		name := fmt.Sprintf("topic-%d", step%3)
		switch step {
		case 0, 1, 2:
			w.setTopic(name, false, nil)
		case 3, 4, 5:
			w.setTopic(name, true, nil)
		case 6:
			w.setTopic("topic-0", true, sarama.ErrNotEnoughReplicas)
		case 7:
			w.setTopic("topic-1", true, sarama.ErrTopicAuthorizationFailed)
		case 8:
			w.setKafka(false)
		case 9:
			w.setKafka(true)
		case 10:
			crashes++
			generation = w.crash()
			p.cancel()
			old := p
			crashed.Go(func() { <-old.done }) //nolint:errcheck // a crashed process may say anything
			p = start(t, w, generation)
		case 11:
			w.setSQL(!w.sqlIsDown())
		}
		pause(t.Context(), time.Duration(200+step*170)*time.Millisecond)
	}
	w.setKafka(true)
	w.setSQL(false)
	for i := range 3 {
		w.setTopic(fmt.Sprintf("topic-%d", i), true, nil)
	}
	close(stopWriting)
	writer.Wait()
	w.settle(t, 10*time.Minute)
	require.NoError(t, p.stop())
	crashed.Wait()
	// What was published before the first checkpoint is not looked up. Otherwise a crash leaves no copies.
	assert.LessOrEqual(t, w.verdict(t), 40*crashes, "copies")
}

func (w *world) write(stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
			w.commit(true, fmt.Sprintf("topic-%d", i%3), "a", fmt.Sprintf("k%d", i%7))
		}
	}
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
