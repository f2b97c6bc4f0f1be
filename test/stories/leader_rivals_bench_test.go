//go:build bench && !unit

package stories

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/race"
	"example.com/outbox-relay/test/rig"
)

// promised is the lease that is the default, and what a failover may take beyond it.
var promised = terms{lease: 10 * time.Second, slack: 2 * time.Second}

// fullLength runs a story on both servers, one after the other: their times are measured.
func fullLength(t *testing.T, run func(t *testing.T, start starter)) {
	t.Helper()
	if race.Enabled {
		t.Fatal("measure without -race")
	}
	t.Run("MySQL", func(t *testing.T) { run(t, rig.MySQL) })
	t.Run("MariaDB", func(t *testing.T) { run(t, rig.MariaDB) })
}

// TestLeaderStoppedFor20s is TestLeaderWokenAfterItsLease with the default lease of 10 s.
func TestLeaderStoppedFor20s(t *testing.T) {
	fullLength(t, func(t *testing.T, start starter) {
		for _, lock := range []string{"mysql", "redis"} {
			t.Run(lock, func(t *testing.T) {
				r := newRivals(t, harness.Cast{SQL: start(t)}, lock, "", promised)
				r.leader.Pause()
				stopped := time.Now()
				took := r.taken(stopped, promised.lease+promised.slack)
				pass(t.Context(), 20*time.Second-time.Since(stopped))
				epoch := r.Epoch()
				r.leader.Resume()
				v := r.deposed(0)
				assert.Equal(t, epoch, r.Epoch(), "the woken one has not saved")
				t.Logf("the standby publishes %s after the leader was stopped, %d copies", took, v.Duplicates)
			})
		}
	})
}

// TestLockTroubleAtFullLength are the stories of leaders_server_test.go with the default lease.
func TestLockTroubleAtFullLength(t *testing.T) {
	fullLength(t, func(t *testing.T, start starter) {
		t.Run("SessionKilled", func(t *testing.T) { lockSessionKilled(t, start(t), promised) })
		t.Run("ConnectionHalfOpen", func(t *testing.T) { lockHalfOpen(t, start(t), promised) })
		t.Run("PrimaryHalfOpen", func(t *testing.T) { primaryHalfOpen(t, start(t), promised) })
	})
	t.Run("LeaseDeleted", func(t *testing.T) { redisLeaseDeleted(t, promised) })
	t.Run("LeaseOverwritten", func(t *testing.T) { redisLeaseOverwritten(t, promised) })
}

// TestTakeoverWithinASecond measures what a deployment costs.
func TestTakeoverWithinASecond(t *testing.T) {
	const rounds = 10
	fullLength(t, func(t *testing.T, start starter) {
		for _, lock := range []string{"mysql", "redis"} {
			t.Run(lock, func(t *testing.T) {
				times := takeovers(t, start(t), lock, rounds)
				t.Logf("from SIGTERM to the standby's first message: p50 %s, at most %s", times[rounds/2].Round(time.Millisecond), times[rounds-1].Round(time.Millisecond))
				assert.Less(t, times[rounds-1], time.Second)
			})
		}
	})
}
