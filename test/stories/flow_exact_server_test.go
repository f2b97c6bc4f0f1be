//go:build !unit

package stories

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// endToEnd is the main story: eight writers with everything that a transaction can do, 50 000 committed rows, three
// tables found by a pattern, four topics. Exact, no copy, and all by the stream: the sweeper had nothing to do.
func endToEnd(t *testing.T, c harness.Cast, rows int) {
	t.Helper()
	s := harness.NewScene(t, c)
	relay := s.Start()
	s.Write(func(cfg *workload.Config) { cfg.Rows, cfg.MaxTxn, cfg.Batch = rows, 20, 10 })
	v := s.Exact(90*time.Second, oracle.Options{})
	assert.Equal(t, rows, v.Delivered)
	assert.Zero(t, v.Swept, "the stream missed rows and the sweeper sent them")
	m, err := relay.Metrics()
	require.NoError(t, err)
	assert.Zero(t, m.Sum("stream_missed_total"), "nothing is unexplained")
	_, body := relay.Fetch("/api/v1/status")
	assert.Contains(t, strings.Join(strings.Fields(body), ""), `"sweeper_recovered":0,"unexplained":0`)
	s.CaughtUp(12 * time.Second)
	code, took := relay.Stop()
	assert.Zero(t, code)
	t.Logf("stopped in %s", took)
}

func TestEndToEndMySQL(t *testing.T) {
	endToEnd(t, harness.Cast{Tables: 3, Topics: 4, Patient: true}, 50_000)
}

func TestEndToEndMariaDB(t *testing.T) {
	endToEnd(t, harness.Cast{SQL: rig.MariaDB(t), Tables: 3, Topics: 4, Patient: true}, 50_000)
}

// TestEndToEndPatternsOwnTable uses the table as the pattern has it, with no column added; keys come from the content.
func TestEndToEndPatternsOwnTable(t *testing.T) {
	endToEnd(t, harness.Cast{Plain: true, Patient: true}, 5_000)
}

func TestReplicaAsSource(t *testing.T) {
	primary := rig.MySQL(t, rig.Own())
	endToEnd(t, harness.Cast{SQL: primary, Replica: primary.Replica(t), Patient: true}, 5_000)
}
