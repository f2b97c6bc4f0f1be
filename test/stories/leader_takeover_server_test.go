//go:build !unit

package stories

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestTakeoverBySIGTERM: the leader is stopped as by a deployment, and the standby goes on. Nothing comes twice.
func TestTakeoverBySIGTERM(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		start starter
		lock  string
	}{"MySQL": {rig.MySQL, "mysql"}, "MariaDB": {rig.MariaDB, "mysql"}, "Redis": {rig.MySQL, "redis"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Logf("from SIGTERM to the standby's first message: %s", takeovers(t, way.start(t), way.lock, 2))
		})
	}
}

// takeovers stops the leader again and again, and returns how long it took each time from SIGTERM until the next one had
// published, the shortest first.
func takeovers(t *testing.T, server *rig.Server, lock string, rounds int) []time.Duration {
	s := harness.NewScene(t, harness.Cast{SQL: server, Silent: true})
	s.Set("leader.lock", lock)
	leader, standby := s.Start(), s.Launch()
	finish := s.Writing(func(cfg *workload.Config) { cfg.Rate = rivalRate })
	times := make([]time.Duration, 0, rounds)
	for range rounds {
		standby.WaitReady(30 * time.Second)
		s.Committed(rivalRate)
		took := make(chan time.Duration, 1) // size 1: it is read after the leader has ended
		go func(begun time.Time) {
			for metric(standby, "messages_published_total") <= 0 && time.Since(begun) < 30*time.Second {
				pass(t.Context(), 5*time.Millisecond)
			}
			took <- time.Since(begun)
		}(time.Now())
		code, _ := leader.Stop()
		assert.Zero(t, code)
		times = append(times, <-took)
		leader, standby = standby, s.Launch()
	}
	finish()
	v := s.Exact(20*time.Second, oracle.Options{}) // no copy
	s.ByStream(v)
	s.CaughtUp(15 * time.Second)
	slices.Sort(times)
	assert.Less(t, times[rounds-1], 20*time.Second)
	return times
}

// TestFailoverLosesTheLock: the primary's address moves to a promoted replica, where nobody holds the lock, while the old primary
// lives on. One of two relays leads there, and nothing is lost or repeated out of order.
func TestFailoverLosesTheLock(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		primary := start(t, rig.Own())
		replica := primary.Replica(t, rig.Args("--log-bin=aaa-bin", "--log-slave-updates=1"))
		w := newWire(t, primary.Addr)
		s := harness.NewScene(t, harness.Cast{SQL: primary, Silent: true})
		s.Set("source.primary.address", w.Addr, "leader.lease", brief.lease.String(), "checkpoint.interval", "100ms")
		leader := s.Start()
		standby := s.Launch()
		standby.WaitReady(30 * time.Second)
		finish := s.Writing(func(cfg *workload.Config) { cfg.Rate, cfg.Prefix = rivalRate, "before" })
		s.Committed(2 * rivalRate)
		finish()
		s.CaughtUp(15 * time.Second)
		leader.Pause() // it has read none of these when the address moves
		s.Post(s.DB, harness.Numbered("last", 20)...)
		replica.CatchUp(t, primary)
		epoch := s.Epoch()
		w.point(replica.Addr)
		promote(s, replica)
		leader.Resume()
		finish = s.Writing(func(cfg *workload.Config) { cfg.Rate, cfg.Prefix = rivalRate, "after" })
		eventually(t, 30*time.Second, "one of them leads on the new primary", func() bool { return s.Epoch() > epoch })
		s.Committed(2 * rivalRate)
		finish()
		v := s.Exact(30*time.Second, oracle.Options{Duplicates: true})
		assert.LessOrEqual(t, v.Duplicates, 20, "the last ones may have been in the old leader's hands")
		assert.NotEqual(t, leader.Leads(), standby.Leads(), "one leads")
		s.CaughtUp(15 * time.Second)
		assert.Contains(t, s.Saved().File, "aaa-bin")
	})
}

// promote makes a replica the scene's primary.
func promote(s *harness.Scene, replica *rig.Server) {
	s.Move(replica)
	s.Exec(s.DB, "STOP "+replicating(replica))
	s.Exec(s.DB, "SET GLOBAL read_only = OFF")
}

// replicating is what a server calls that it follows another.
func replicating(replica *rig.Server) string {
	if replica.Flavor == rig.FlavorMariaDB {
		return "SLAVE"
	}
	return "REPLICA"
}

func TestStandbyTakesOver(t *testing.T) {
	t.Run("MySQLLock", func(t *testing.T) { takeOver(t) })
	t.Run("RedisLease", func(t *testing.T) { takeOver(t, "leader.lock", "redis") })
}

func takeOver(t *testing.T, settings ...any) {
	s := harness.NewScene(t, harness.Cast{Topics: 2, Patient: true})
	s.Set(settings...)
	leader := s.Start()
	standby := s.Launch()
	standby.WaitReady(30 * time.Second)
	require.False(t, standby.Leads(), "two leaders")
	finish := s.Writing(underLoad)
	s.Committed(1000)
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
	s.Committed(500)
	finish()
	s.Exact(60*time.Second, oracle.Options{Duplicates: true})
	code, _ := standby.Stop()
	assert.Zero(t, code)
}
