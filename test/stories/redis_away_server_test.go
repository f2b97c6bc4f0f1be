//go:build !unit

package stories

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestRedisComesAndGoes: it is away under load, then restarted five times in a row. Publishing goes on, the checkpoint
// catches up, nothing is left behind.
func TestRedisComesAndGoes(t *testing.T) {
	inModes(t, func(t *testing.T, start starter, silent bool) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Redis: rig.Redis(t, rig.Own()), Silent: silent})
		relay := s.Start()
		finish := s.Writing(func(cfg *workload.Config) { cfg.Rate = 200 })
		s.Committed(200)
		s.CaughtUp(15 * time.Second)
		before, cpu := goroutines(t, relay), relay.CPU()
		s.Cast.Redis.Stop(t)
		away := time.Now()
		pass(t.Context(), 5*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Log.Wait(ctx, s.Ledger.Counts().Committed), "publishing goes on")
		code, _ := relay.Fetch("/livez")
		assert.Equal(t, http.StatusOK, code, "a relay without Redis is alive")
		assert.Less(t, relay.CPU()-cpu, time.Since(away), "no hot loop")
		for range 5 {
			s.Cast.Redis.Start(t)
			s.Committed(20)
			s.Cast.Redis.Stop(t)
		}
		s.Cast.Redis.Start(t)
		s.Committed(100)
		finish()
		v := s.Exact(20*time.Second, oracle.Options{})
		s.ByStream(v)
		s.CaughtUp(20 * time.Second)
		harness.Eventually(t, 15*time.Second, "as many goroutines as before", func() (bool, string) {
			n := goroutines(t, relay)
			return n <= before+6, fmt.Sprintf("%d before, %d now", before, n)
		})
	})
}

// TestRedisIsLoading: a Redis that has only just started answers that it is loading. That is not to say that there is no
// checkpoint: the relay waits for it and goes on from there.
func TestRedisIsLoading(t *testing.T) {
	t.Parallel()
	redis := rig.Redis(t, rig.Own())
	s := harness.NewScene(t, harness.Cast{Redis: redis, Silent: true})
	relay := s.Start()
	s.CaughtUp(15 * time.Second)
	code, _ := relay.Stop()
	require.Zero(t, code)
	client := redisClient(t, s)
	_, err := client.Pipelined(t.Context(), func(p goredis.Pipeliner) error {
		for i := range 30_000 {
			p.Set(t.Context(), fmt.Sprintf("filler-%d", i), "x", 0)
		}
		return nil
	})
	require.NoError(t, err)
	redis.Kill(t)
	s.Post(s.DB, harness.Numbered("meanwhile", 20)...)
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		redis.Start(t, "--key-load-delay", "200")
	}()
	harness.Eventually(t, 20*time.Second, "Redis loads", func() (bool, string) {
		err := client.Ping(t.Context()).Err()
		return err != nil && strings.Contains(err.Error(), "LOADING"), fmt.Sprint(err)
	})
	relay = s.Launch()
	relay.WaitLog(20*time.Second, "LOADING")
	assert.Equal(t, 503, ready(relay))
	<-loaded
	s.Leads(relay)
	assert.Contains(t, relay.Log(), `"recovery":"resumed"`)
	v := s.Exact(20*time.Second, oracle.Options{})
	s.ByStream(v)
}

// TestRedisCannotWrite: Redis answers and takes no writes. Publishing goes on, readiness tells, and it recovers.
func TestRedisCannotWrite(t *testing.T) {
	t.Parallel()
	redis := rig.Redis(t, rig.Args("--appendonly", "no", "--save", "1 1", "--enable-protected-configs", "yes"))
	s := harness.NewScene(t, harness.Cast{Redis: redis, Silent: true})
	relay := s.Start()
	s.CaughtUp(15 * time.Second)
	redisCommand(t, s, "CONFIG", "SET", "dir", "/proc")
	relay.WaitLog(30*time.Second, "MISCONF")
	s.Post(s.DB, harness.Numbered("unsaved", 20)...)
	s.Seen(20, 10*time.Second)
	before := s.Saved()
	assert.Positive(t, metric(relay, "checkpoint_saves_total", "result", "failed"))
	_, body := relay.Fetch("/readyz?verbose")
	assert.Contains(t, body, "MISCONF")
	relay.Kill()
	assert.Equal(t, before, s.Saved())
	relay = s.Launch()
	relay.WaitLog(20*time.Second, "MISCONF")
	redisCommand(t, s, "CONFIG", "SET", "dir", t.TempDir())
	redisCommand(t, s, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
	s.Leads(relay)
	assert.Contains(t, relay.Log(), `"recovery":"resumed"`)
	s.Post(s.DB, harness.Numbered("after", 5)...)
	v := s.Exact(20*time.Second, oracle.Options{})
	s.ByStream(v)
	s.CaughtUp(20 * time.Second)
}

// TestLeaderWokenAfterItsLease: the leader is frozen for longer than its lease while a standby takes over. When it wakes
// it neither saves nor goes on, and what it had in its hands is all that may come twice.
func TestLeaderWokenAfterItsLease(t *testing.T) {
	for _, lock := range []string{"mysql", "redis"} {
		t.Run(lock, func(t *testing.T) {
			onBoth(t, func(t *testing.T, start starter) {
				s := harness.NewScene(t, harness.Cast{SQL: start(t), Silent: true})
				s.Set("leader.lock", lock, "leader.lease", "3s", "checkpoint.interval", "100ms", "limits.in_flight", 500)
				leader := s.Start()
				standby := s.Launch()
				standby.WaitReady(30 * time.Second)
				finish := s.Writing(func(cfg *workload.Config) { cfg.Rate = 300 })
				s.Committed(200)
				s.CaughtUp(15 * time.Second)
				leader.Pause()
				s.Leads(standby)
				s.Committed(500)
				epoch := s.Epoch()
				leader.Resume()
				s.Committed(500)
				eventually(t, 15*time.Second, "the woken one stands by", func() bool { return !leader.Leads() && ready(leader) == 200 })
				assert.Equal(t, epoch, s.Epoch())
				assert.True(t, standby.Leads())
				finish()
				v := s.Exact(20*time.Second, oracle.Options{Duplicates: true})
				assert.LessOrEqual(t, v.Duplicates, 1000, "what was in flight and what a batch is")
				code, _ := leader.Stop()
				assert.Zero(t, code)
			})
		})
	}
}
