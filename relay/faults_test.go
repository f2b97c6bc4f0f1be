package relay_test

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/test/bubble"
)

// faultRuns is how many stories TestRelayUnderFaults tries, each about a second; a nightly run wants 1000.
var faultRuns = flag.Int("relay.faults", 30, "stories for TestRelayUnderFaults to try")

// checkTimes is rapid.Check with a number of checks of its own. rapid knows one for all tests: no other may run
// beside it, so the caller must not be parallel.
func checkTimes(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	require.NoError(t, checks.Set(strconv.Itoa(n)))
	defer func() { require.NoError(t, checks.Set(before)) }()
	rapid.Check(t, property)
}

// manner is how a relay treats order and dead letters, and what is written.
type manner struct {
	hold, relaxed bool
	// large transactions are handed over slowly, into windows that take them whole: nothing but its end stops the
	// pump amid one.
	large bool
	// staged bodies: a third of the rows have theirs in Kafka.
	staged bool
}

var manners = []manner{{}, {hold: true}, {relaxed: true}, {large: true}, {large: true, hold: true}}

func (m manner) config() relay.Config {
	cfg := testConfig()
	cfg.Order = order.Config{Hold: m.hold, Relaxed: m.relaxed}
	if m.large {
		cfg.InFlight, cfg.Unmarked = 4*largeRows, 4*largeRows
	}
	cfg.Retry.MaxRetries, cfg.Sweep.Retry.MaxRetries = 6, 6 // soon spent
	return cfg
}

// ordered says whose order the manner promises.
func (m manner) ordered(r *tableRow) bool {
	switch {
	case m.relaxed:
		return false
	case m.hold:
		return true
	}
	return !r.died // a dead letter that is retried comes late: its key went on
}

// story is a run under faults.
type story struct {
	t          *testing.T
	w          *world
	m          manner
	p          *process
	generation int
	crashes    int
	lost       int // checkpoints
	crashed    sync.WaitGroup
}

// TestRelayUnderFaults is the promise under everything that can happen at once: topics that come and go, messages
// that can't be sent and a person who decides about them, Kafka and the database away, crashes and clean restarts, a
// lost checkpoint. After the last fault heals everything is delivered, and in order per key as far as the manner
// promises it: strict ones keep the order of each key, and with hold no message passes a dead letter of its key.
func TestRelayUnderFaults(t *testing.T) {
	checkTimes(t, *faultRuns, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		m := manners[rapid.IntRange(0, len(manners)-1).Draw(rt, "manner")]
		steps := rapid.SliceOfN(rapid.IntRange(0, lastStep), 5, 60).Draw(rt, "steps")
		tellStory(t, seed, m, steps)
	})
}

// TestStoriesThatFailed tells the stories again that have failed once.
func TestStoriesThatFailed(t *testing.T) {
	for _, kept := range []struct {
		name  string
		seed  uint64
		m     manner
		steps []int
	}{
		{"StoppedAmidLargeTransactions", 1, manner{large: true}, slices.Repeat([]int{19}, 20)},
		{"LockLostAmidLargeTransactions", 1, manner{large: true}, slices.Repeat([]int{21}, 20)},
		{"FencedAmidLargeTransactions", 1, manner{large: true}, slices.Repeat([]int{23}, 20)},
		{"StalledAmidLargeTransactions", 1, manner{large: true}, slices.Repeat([]int{24, 19, 25, 22}, 5)},
		{"StreamBrokenAmidLargeTransactions", 1, manner{large: true}, slices.Repeat([]int{26}, 20)},
		{"UnreadableRowsAmidLargeTransactions", 1, manner{large: true}, slices.Repeat([]int{27, 26, 19, 22}, 5)},
		{"UnknownOutcomeAmidLargeTransactions", 1, manner{large: true}, slices.Repeat([]int{lastStep}, 20)},
		{"StoppedAmidStagedBodies", 1, manner{large: true, staged: true}, slices.Repeat([]int{19}, 20)},
		{"LockLostWhileTopicsComeAndGo", 7674, manner{large: true}, []int{19, 21, 13, 3, 4, 22, 12}},
	} {
		t.Run(kept.name, func(t *testing.T) { tellStory(t, kept.seed, kept.m, kept.steps) })
	}
}

func tellStory(t *testing.T, seed uint64, m manner, steps []int) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		t.Logf("seed %d, %+v, steps %#v: keep it in TestStoriesThatFailed", seed, m, steps)
		s := &story{t: t, w: newWorld(seed), m: m}
		s.w.staging = m.staged
		s.tell(steps)
	})
}

const lastStep = 28

// tell is a story of one fault after the other.
func (s *story) tell(steps []int) {
	write := s.w.write
	if s.m.large {
		write = s.w.writeLarge
		// A message that is refused for now, while hundreds of its topic are on their way behind it, can't be put
		// right: a topic may take those again. That is no matter of stops.
		s.w.trouble.do(func(t *trouble) { t.sending, t.prompt = largeSend, true })
	}
	s.p = startWith(s.t, s.w, 0, s.m.config())
	stopWriting := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { write(stopWriting) })
	for _, step := range steps {
		s.step(step)
		pause(s.t.Context(), time.Duration(200+step%12*170)*time.Millisecond)
	}
	s.w.setKafka(true)
	s.w.setSQL(false)
	s.w.trouble.stick("", false)
	for i := range 3 {
		s.w.setTopic(fmt.Sprintf("topic-%d", i), true, nil)
	}
	close(stopWriting)
	writer.Wait()
	s.settle()
	s.stop()
	s.crashed.Wait()
	// What was published before the first checkpoint, or since one that was lost, or while Kafka can't be read at the
	// start, is not looked up: the windows bound it. Otherwise a crash leaves no copies.
	cfg := s.m.config()
	windows := cfg.InFlight*s.crashes + (cfg.InFlight+cfg.Unmarked)*(s.lost+s.w.blind)
	assert.LessOrEqual(s.t, s.w.judge(s.t, s.m.ordered), windows, "copies")
	if s.m.hold {
		require.Empty(s.t, s.w.passed, "verdict: out of order, came before a dead letter of their key")
	}
}

func (s *story) step(step int) {
	w, name := s.w, fmt.Sprintf("topic-%d", step%3)
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
		s.crash(true)
	case 11:
		w.setSQL(!w.sqlIsDown())
	case 12, 13, 14:
		w.poison(name, "a")
		w.poison(name, fmt.Sprintf("k%d", step%7))
	case 15:
		w.decide(decision(w.roll(int(decisionKind))), true)
	case 16, 17, 18:
		w.decide(decision(w.roll(int(decisionKind))), false)
	case 19:
		s.stop()
		s.p = startWith(s.t, w, s.generation, s.m.config())
	case 20:
		s.crash(false)
	case 21, 22:
		w.loseLock()
	case 23:
		w.fence()
	case 24:
		w.trouble.stick(name, true)
	case 25:
		w.trouble.stick(name, false)
	case 26:
		w.breakReader()
	case 27:
		w.commitUnreadable(name, 3)
	case lastStep:
		w.trouble.do(func(t *trouble) { t.unknown = 1 })
	}
}

// stop stops the relay cleanly. One that has just lost its lock, or learns by its last save that it is fenced, says
// so.
func (s *story) stop() {
	if err := s.p.stop(); !errors.Is(err, checkpoint.ErrFenced) && !errors.Is(err, relay.ErrLockLost) {
		require.NoError(s.t, err)
	}
}

// crash ends the process as SIGKILL does, and starts another, with the checkpoint or without.
func (s *story) crash(checkpoint bool) {
	s.crashes++
	s.generation = s.w.crash()
	s.p.cancel()
	old := s.p
	s.crashed.Go(func() { <-old.done }) //nolint:errcheck // a crashed process may say anything
	if !checkpoint {
		s.w.loseCheckpoint()
	}
	if !s.w.knowsOffsets() { // also when none was saved yet
		s.lost++
	}
	s.p = startWith(s.t, s.w, s.generation, s.m.config())
}

// settle retries dead letters until there are none, and waits until everything is sent.
func (s *story) settle() {
	deadline := time.Now().Add(30 * time.Minute)
	for {
		dead := s.w.decide(retryIt, true)
		n, such := s.w.left()
		if dead == 0 && n == 0 {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(s.t, "not settled", "%d rows, such as %+v", n, such)
		}
		pause(s.t.Context(), 10*time.Second)
	}
}

// write commits small transactions.
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

// A large transaction has largeRows rows of three keys. The relay is busy with them for more than half of the time.
const (
	largeRows  = 150
	largeSend  = 2 * time.Millisecond
	largeEvery = 500 * time.Millisecond
)

// writeLarge commits large transactions.
func (w *world) writeLarge(stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(largeEvery):
			w.commit(true, fmt.Sprintf("topic-%d", i%3), slices.Repeat([]string{"a", "b", "c"}, largeRows/3)...)
		}
	}
}

func (w *world) roll(sides int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(sides)
}

// knowsOffsets reports whether the saved checkpoint says from where on Kafka is to be asked.
func (w *world) knowsOffsets() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.saved != nil && len(w.saved.Offsets) > 0
}

func (w *world) loseCheckpoint() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saved = nil
}
