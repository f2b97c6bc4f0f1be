//go:build !unit

package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
)

// restarts is how often a test of restarts does it.
const restarts = 10

// underLoad writes at a steady pace, so that the relay always has something in its hands.
func underLoad(cfg *workload.Config) { cfg.Rate, cfg.MaxTxn = 1000, 20 }

func TestRestartBySIGTERMUnderLoad(t *testing.T) {
	s := newScene(t, cast{tables: 2, topics: 3})
	relay := s.start()
	finish := s.writing(underLoad)
	for round := range restarts {
		s.committed(300+rand.IntN(500), 20*time.Second)
		code, took := relay.Stop()
		require.Zero(t, code, "round %d", round)
		assert.Less(t, took, 25*time.Second)
		s.look()
		relay = s.start()
	}
	finish()
	v := s.exact(60*time.Second, oracle.Options{})
	assert.Zero(t, v.Duplicates)
	assert.Zero(t, v.Swept, "the stream missed rows and the sweeper sent them")
}

// TestRestartBySIGKILLUnderLoad kills the relay at any moment. Copies are allowed then, nothing else; and few of them,
// since the replay window is looked up in the table and in Kafka.
func TestRestartBySIGKILLUnderLoad(t *testing.T) {
	s := newScene(t, cast{tables: 2, topics: 3})
	relay := s.start()
	s.caughtUp(12 * time.Second)
	finish := s.writing(underLoad)
	for range restarts {
		s.committed(300+rand.IntN(500), 20*time.Second)
		relay.Kill()
		s.look()
		relay = s.start()
	}
	finish()
	v := s.exact(60*time.Second, oracle.Options{Duplicates: true})
	assert.LessOrEqual(t, v.Duplicates, v.Committed/100, "the replay window suppresses nearly all copies")
}

// TestKilledBeforeItsFirstCheckpoint finds rows in the table and no position, is killed as soon as it has saved one, and
// meets new rows of the same keys after that: the old ones must still go first. What the dead relay had claimed waits until its
// claims end, half a minute later.
func TestKilledBeforeItsFirstCheckpoint(t *testing.T) {
	s := newScene(t, cast{topics: 2})
	load := func(prefix string, rows int) func(*workload.Config) {
		return func(cfg *workload.Config) {
			cfg.Rows, cfg.MaxTxn, cfg.Batch, cfg.Keys, cfg.Prefix, cfg.KeyPrefix = rows, 50, 50, 5, prefix, "k"
		}
	}
	s.write(load("old", 5000))
	relay := s.start()
	harness.Eventually(t, 20*time.Second, "a first checkpoint", func() (bool, string) {
		_, err := s.sampler.Checkpoint.Read(t.Context())
		return err == nil, fmt.Sprint(err)
	})
	relay.Kill()
	s.look()
	s.start()
	s.write(load("new", 500))
	s.exact(60*time.Second, oracle.Options{Duplicates: true})
}

func TestStandbyTakesOver(t *testing.T) {
	t.Run("MySQLLock", func(t *testing.T) { takeOver(t) })
	t.Run("RedisLease", func(t *testing.T) { takeOver(t, "leader.lock", "redis") })
}

func takeOver(t *testing.T, settings ...any) {
	s := newScene(t, cast{topics: 2})
	s.settings = s.settings.With(settings...)
	leader := s.start()
	standby := s.again()
	standby.WaitReady(30 * time.Second)
	require.False(t, standby.Leads(), "two leaders")
	finish := s.writing(underLoad)
	s.committed(1000, 20*time.Second)
	leader.Kill()
	killed := time.Now()
	harness.Eventually(t, 15*time.Second, "a message published after the leader's death", func() (bool, string) {
		m, err := standby.Metrics()
		if err != nil {
			return false, err.Error()
		}
		n := m.Sum("messages_published_total")
		return n > 0 && standby.Leads(), fmt.Sprintf("%g published", n)
	})
	t.Logf("took over within %s", time.Since(killed).Round(10*time.Millisecond))
	s.committed(500, 20*time.Second)
	finish()
	s.exact(60*time.Second, oracle.Options{Duplicates: true})
	code, _ := standby.Stop()
	assert.Zero(t, code)
}

// TestStandbyTakesOverFromACleanStop hands over without a copy.
func TestStandbyTakesOverFromACleanStop(t *testing.T) {
	s := newScene(t, cast{topics: 2})
	leader := s.start()
	standby := s.again()
	standby.WaitReady(30 * time.Second)
	finish := s.writing(underLoad)
	s.committed(500, 20*time.Second)
	code, _ := leader.Stop()
	assert.Zero(t, code)
	standby.WaitLeading(15 * time.Second)
	s.committed(500, 20*time.Second)
	finish()
	s.exact(60*time.Second, oracle.Options{})
}
