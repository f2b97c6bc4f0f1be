//go:build !unit

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/race"
	"example.com/outbox-relay/test/rig"
)

// pass lets time go by; a test that ends early does not wait.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// TestRedisStoppedAndStarted: publishing goes on, the checkpoint waits and then catches up.
func TestRedisStoppedAndStarted(t *testing.T) {
	s := newScene(t, cast{redis: rig.Redis(t, rig.Own())})
	relay := s.start()
	finish := s.writing(func(cfg *workload.Config) { cfg.Rate = 500 })
	s.committed(500, 20*time.Second)
	s.cast.redis.Stop(t)
	s.committed(1000, 20*time.Second)
	goal := s.ledger.Counts().Committed
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, s.log.Wait(ctx, goal), "publishing goes on without Redis")
	code, _ := relay.Fetch("/livez")
	assert.Equal(t, http.StatusOK, code)
	s.cast.redis.Start(t)
	s.committed(500, 20*time.Second)
	finish()
	s.exact(30*time.Second, oracle.Options{})
	s.caughtUp(12 * time.Second)
}

// TestKafkaStoppedFor20s: the stream holds. No retry is spent, memory stays, order is kept, and no copy is made: an
// idempotent producer that lost no answer has nothing to repeat, and one that did is sorted out by the broker.
func TestKafkaStoppedFor20s(t *testing.T) {
	s := newScene(t, cast{kafka: rig.Kafka(t, rig.Own()), topics: 3})
	s.settings = s.settings.With("limits.in_flight", 2000)
	relay := s.start()
	finish := s.writing(func(cfg *workload.Config) { cfg.Rate = 800 })
	s.committed(1500, 20*time.Second)
	before := relay.Memory()
	s.cast.kafka.Stop(t)
	pass(t.Context(), 20*time.Second)
	code, _ := relay.Fetch("/livez")
	assert.Equal(t, http.StatusOK, code, "a relay without Kafka is alive")
	var spent int
	for _, table := range s.tables {
		var n int
		require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+" WHERE status <> 0 AND status <> 1 OR retry_count > 0").Scan(&n))
		spent += n
	}
	assert.Zero(t, spent, "an outage spends no retries")
	s.cast.kafka.Start(t)
	s.committed(1000, 20*time.Second)
	finish()
	// The broker was stopped with requests on their way: a rebuilt producer may send some again.
	v := s.exact(60*time.Second, oracle.Options{Duplicates: true})
	assert.LessOrEqual(t, v.Duplicates, 2000, "no more than was in flight")
	after := relay.Memory()
	t.Logf("memory %d MiB before, %d MiB at its highest, %d copies", before.Now>>20, after.Peak>>20, v.Duplicates)
	limit := uint64(100 << 20)
	if race.Enabled {
		limit = 400 << 20 // the race detector takes several times the memory
	}
	assert.Less(t, after.Peak, limit)
	s.caughtUp(12 * time.Second)
}

// TestMySQLRestarted: the writers see outcomes that they cannot know; the relay reconnects and goes on where it was.
func TestMySQLRestarted(t *testing.T) {
	s := newScene(t, cast{sql: rig.MySQL(t, rig.Own())})
	relay := s.start()
	finish := s.writing(func(cfg *workload.Config) { cfg.Rate, cfg.TxnTimeout = 500, 5*time.Second })
	s.committed(500, 20*time.Second)
	s.cast.sql.Restart(t)
	s.committed(500, 30*time.Second)
	s.cast.sql.Kill(t)
	s.cast.sql.Start(t)
	s.committed(500, 30*time.Second)
	finish()
	// The relay itself went on, so it knows what was acked: no copy.
	s.exact(60*time.Second, oracle.Options{})
	m, err := relay.Metrics()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, m.Sum("source_reconnects_total"), 2.0)
	s.caughtUp(12 * time.Second)
}

// TestTopicCreatedAfter15s: messages for a topic that does not exist wait in the table, in order, at the cost of one
// probe; the other topics do not notice. The topic comes while more is being written.
func TestTopicCreatedAfter15s(t *testing.T) {
	s := newScene(t, cast{topics: 2, missing: 1})
	s.settings = s.settings.With("retry.backoff", []string{"1s", "2s", "3s"}, "sweep.interval", "1s")
	s.start()
	begun := time.Now()
	finish := s.writing(func(cfg *workload.Config) { cfg.Rate = 400 })
	s.committed(2000, 20*time.Second)
	harness.Eventually(t, 10*time.Second, "the other topics flow on", func() (bool, string) {
		var waiting int
		err := s.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+s.tables[0]+
			` WHERE topic <> ? AND status <> 1 AND create_time < NOW() - INTERVAL 2 SECOND`, s.missing[0]).Scan(&waiting)
		return err == nil && waiting == 0, fmt.Sprint(waiting, " rows of other topics wait ", err)
	})
	pass(t.Context(), 15*time.Second-time.Since(begun))
	var tries, most int
	require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT SUM(retry_count), MAX(retry_count) FROM "+s.tables[0]).Scan(&tries, &most))
	// The stream's probe was the first to commit, which is not the lowest id for certain: ids commit out of order.
	assert.GreaterOrEqual(t, most, tries-3, "only the topic's oldest message is tried and spends retries")
	assert.Less(t, most, 12, "the probe backs off")
	s.cast.kafka.CreateTopic(t, s.missing[0], 3, nil)
	s.committed(2000, 20*time.Second)
	finish()
	v := s.exact(60*time.Second, oracle.Options{Retries: true})
	assert.Positive(t, v.Swept)
	s.caughtUp(12 * time.Second)
}
