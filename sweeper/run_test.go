package sweeper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/sweeper"
	"example.com/outbox-relay/test/bubble"
)

// start runs the sweeper until the test ends.
func (b *bench) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	synctest.Wait()
}

func (b *bench) rounds(t *testing.T, result string) int {
	t.Helper()
	return int(value(t, b.metrics.SweepRounds.WithLabelValues(result)))
}

func TestRunMakesAPassAtEachInterval(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		require.Zero(t, b.LastPass())
		b.start(t)
		require.Equal(t, time.Now(), b.LastPass())
		require.Equal(t, 1, b.rounds(t, words.RoundDone))
		wait(t, interval-1)
		require.Equal(t, 1, b.rounds(t, words.RoundDone))
		wait(t, 1)
		require.Equal(t, 2, b.rounds(t, words.RoundDone))
	})
}

func TestKickWakesAtOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start(t)
		b.Kick()
		synctest.Wait()
		require.Equal(t, 2, b.rounds(t, words.RoundDone))
	})
}

func TestWakeInTakesTheNearest(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start(t)
		b.WakeIn(20 * time.Second)
		b.WakeIn(5 * time.Second)
		b.WakeIn(10 * time.Second)
		wait(t, 5*time.Second-1)
		require.Equal(t, 1, b.rounds(t, words.RoundDone))
		wait(t, 1)
		require.Equal(t, 2, b.rounds(t, words.RoundDone))
	})
}

func TestWakeInDoesNotTurnTheLoopHot(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start(t)
		b.WakeIn(-time.Hour)
		synctest.Wait()
		require.Equal(t, 1, b.rounds(t, words.RoundDone))
		wait(t, 100*time.Millisecond)
		require.Equal(t, 2, b.rounds(t, words.RoundDone))
		wait(t, interval-1)
		require.Equal(t, 2, b.rounds(t, words.RoundDone), "one wake-up, one pass")
	})
}

func TestDelayedRowIsSentWhenItIsDue(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.table.put("orders", outbox.Pending, 1)
		b.table.rows[1].next = time.Now().Add(7 * time.Second)
		b.start(t)
		wait(t, 7*time.Second-1)
		require.Empty(t, b.broker.published())
		wait(t, 1)
		require.Equal(t, []string{"~m1"}, b.broker.published())
	})
}

func TestRunGoesOnWhileThereIsMore(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.gate.states["orders"] = "open"
		b.table.put("orders", outbox.Pending, 1, 2, 3, 4, 5, 6, 7)
		b.start(t)
		require.Len(t, b.broker.published(), 7)
	})
}

// A drain that can't go on (a row held by somebody else) is looked at each second, whatever the interval.
func TestDrainIsNotLeftForAnInterval(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := drainingBench(t)
		b.gate.early = true
		b.start(t)
		b.gate.mu.Lock()
		b.gate.early = false
		b.gate.mu.Unlock()
		wait(t, time.Second)
		require.Equal(t, "open", b.gate.state("orders"))
	})
}

// A closed topic whose next try comes while a pass goes on is tried after that pass, not an interval later.
func TestProbeThatIsDueDuringAPassIsNotLeftForAnInterval(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := closedBench(t)
		b.gate.wait("orders", 10*time.Millisecond)
		b.gate.states["slow"] = "draining"
		b.table.put("slow", outbox.Pending, 2)
		b.stream.onPassed = func() { <-time.After(20 * time.Millisecond) }
		b.start(t)
		wait(t, time.Second)
		require.Equal(t, "open", b.gate.state("orders"))
	})
}

func TestRunCountsRoundsThatAreBehind(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.stream.set(sweeper.ErrBehind)
		b.table.put("orders", outbox.Pending, 1)
		b.start(t)
		require.Equal(t, 1, b.rounds(t, words.RoundSkipped))
		wait(t, 2*time.Second)
		require.Equal(t, 2, b.rounds(t, words.RoundSkipped))
		require.Zero(t, b.log.count(`"level":"error"`), "a busy stream is no fault")
		require.Empty(t, b.broker.published())
		b.stream.set(nil)
		wait(t, 2*time.Second)
		require.Len(t, b.broker.published(), 1)
	})
}

func TestFailingPassesAreToldOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.table.setFail(errClosed)
		b.start(t)
		wait(t, time.Minute)
		require.Greater(t, b.rounds(t, words.RoundFailed), 10)
		require.Equal(t, 1, b.log.count("sweep failed"))
		b.table.setFail(nil)
		wait(t, 2*time.Second)
		require.Equal(t, 1, b.log.count("sweeps work again"))
		b.table.setFail(errClosed)
		wait(t, interval)
		require.Equal(t, 2, b.log.count("sweep failed"), "another outage is told again")
	})
}

// A kick tells of rows that were written a moment ago, of more than a batch: all of them go, however fresh.
func TestKickIsForAllOfItsRows(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBenchOf(t, func(cfg *sweeper.Config) { cfg.Grace = 20 * time.Second })
		b.start(t)
		b.table.mu.Lock()
		for id := range uint64(20) {
			b.table.put("orders", outbox.Pending, id+1)
			b.table.rows[id+1].fresh = time.Now().Add(20 * time.Second)
		}
		b.table.mu.Unlock()
		b.Expect()
		wait(t, 2*time.Second)
		require.Len(t, b.broker.published(), 20)
	})
}
