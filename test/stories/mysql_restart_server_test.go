//go:build !unit

package stories

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestMySQLRestarted: the writers see outcomes that they cannot know; the relay reconnects and goes on where it was.
func TestMySQLRestarted(t *testing.T) {
	s := harness.NewScene(t, harness.Cast{SQL: rig.MySQL(t, rig.Own()), Patient: true})
	relay := s.Start()
	finish := s.Writing(func(cfg *workload.Config) { cfg.Rate, cfg.TxnTimeout = 500, 5*time.Second })
	s.Committed(500)
	s.Cast.SQL.Restart(t)
	s.Committed(500)
	s.Cast.SQL.Kill(t)
	s.Cast.SQL.Start(t)
	s.Committed(500)
	finish()
	// The relay itself went on, so it knows what was acked: no copy.
	s.Exact(60*time.Second, oracle.Options{})
	m, err := relay.Metrics()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, m.Sum("source_reconnects_total"), 2.0)
	s.CaughtUp(12 * time.Second)
}
