//go:build !unit

package stories

import (
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

// TestKafkaStoppedFor20s: the stream holds. No retry is spent, memory stays, order is kept, and no copy is made: an
// idempotent producer that lost no answer has nothing to repeat, and one that did is sorted out by the broker.
func TestKafkaStoppedFor20s(t *testing.T) {
	s := harness.NewScene(t, harness.Cast{Kafka: rig.Kafka(t, rig.Own()), Topics: 3, Patient: true})
	s.Set("limits.in_flight", 2000)
	relay := s.Start()
	finish := s.Writing(func(cfg *workload.Config) { cfg.Rate = 800 })
	s.Committed(1500)
	before := relay.Memory()
	s.Cast.Kafka.Stop(t)
	pass(t.Context(), 20*time.Second)
	code, _ := relay.Fetch("/livez")
	assert.Equal(t, http.StatusOK, code, "a relay without Kafka is alive")
	var spent int
	for _, table := range s.Tables {
		var n int
		require.NoError(t, s.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+" WHERE status <> 0 AND status <> 1 OR retry_count > 0").Scan(&n))
		spent += n
	}
	assert.Zero(t, spent, "an outage spends no retries")
	s.Cast.Kafka.Start(t)
	s.Committed(1000)
	finish()
	// The broker was stopped with requests on their way: a rebuilt producer may send some again.
	v := s.Exact(60*time.Second, oracle.Options{Duplicates: true})
	assert.LessOrEqual(t, v.Duplicates, 2000, "no more than was in flight")
	after := relay.Memory()
	t.Logf("memory %d MiB before, %d MiB at its highest, %d copies", before.Now>>20, after.Peak>>20, v.Duplicates)
	limit := uint64(100 << 20)
	if race.Enabled {
		limit = 400 << 20 // the race detector takes several times the memory
	}
	assert.Less(t, after.Peak, limit)
	s.CaughtUp(12 * time.Second)
}
