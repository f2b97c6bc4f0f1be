//go:build bench && !unit

package stories

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
)

// TestMillionForAMissingTopic measures what a million rows for a topic that does not exist cost the others, and the drain
// once it does. It takes about five minutes.
func TestMillionForAMissingTopic(t *testing.T) {
	const million = 1_000_000
	s := harness.NewScene(t, harness.Cast{Topics: 2, Missing: 1, Patient: true})
	relay := s.Start()
	s.CaughtUp(12 * time.Second)
	good := func(prefix string) func(*workload.Config) {
		return func(cfg *workload.Config) {
			cfg.Topics, cfg.Rate, cfg.Rows, cfg.Writers, cfg.MaxTxn, cfg.Prefix = s.Topics, 500, 5000, 4, 4, prefix
		}
	}
	s.Write(good("before"))
	before := p99(t, relay, nil, s.Topics)
	s.Write(func(cfg *workload.Config) {
		cfg.Topics, cfg.Rows, cfg.MinTxn, cfg.MaxTxn, cfg.Batch, cfg.MinBytes, cfg.MaxBytes = s.Missing, million, 500, 500, 500, 100, 200
		cfg.Prefix, cfg.Orders, cfg.Rollbacks, cfg.Savepoints = "late", "", 0, 0
	})
	harness.Eventually(t, 2*time.Minute, "the backlog deferred", func() (bool, string) {
		var left int
		err := s.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM (SELECT 1 FROM "+s.Tables[0]+
			" WHERE status = 0 AND next_retry_time IS NULL LIMIT 100000) AS some").Scan(&left)
		return err == nil && left == 0, fmt.Sprint(left, err)
	})
	quiet, err := relay.Metrics()
	require.NoError(t, err)
	s.Write(good("while"))
	while := p99(t, relay, quiet, s.Topics)
	after, err := relay.Metrics()
	require.NoError(t, err)
	passes, seconds := sweeps(after)
	oldPasses, oldSeconds := sweeps(quiet)
	sweep := time.Duration((seconds - oldSeconds) / max(1, float64(passes-oldPasses)) * float64(time.Second))
	memory := relay.Memory()
	t.Logf("others' p99 from commit to ack: at most %s before, %s meanwhile; %d sweeps of %s; memory %d MiB at its highest",
		before, while, passes-oldPasses, sweep.Round(100*time.Microsecond), memory.Peak>>20)
	begun := time.Now()
	s.Cast.Kafka.CreateTopic(t, s.Missing[0], 3, nil)
	v := s.Exact(5*time.Minute, oracle.Options{Duplicates: true, Retries: true})
	t.Logf("drained within %s, %d copies", time.Since(begun).Round(time.Second), v.Duplicates)
	require.Zero(t, v.Duplicates)
	assert.LessOrEqual(t, while, 2*before)
	assert.Less(t, sweep, 50*time.Millisecond)
}

// sweeps returns how many passes were made and the seconds they took.
func sweeps(m harness.Metrics) (passes uint64, seconds float64) {
	for _, series := range m["outbox_relay_sweep_seconds"].GetMetric() {
		passes += series.GetHistogram().GetSampleCount()
		seconds += series.GetHistogram().GetSampleSum()
	}
	return passes, seconds
}

// p99 returns the bucket bound that 99 % of the acks of these topics lay under since an earlier scrape.
func p99(t *testing.T, relay *harness.Relay, since harness.Metrics, topics []string) time.Duration {
	t.Helper()
	now, err := relay.Metrics()
	require.NoError(t, err)
	counts := map[float64]float64{}
	total := 0.0
	for sign, m := range map[float64]harness.Metrics{1: now, -1: since} {
		for _, series := range m["outbox_relay_commit_to_ack_seconds"].GetMetric() {
			if !slices.ContainsFunc(series.GetLabel(), func(l *dto.LabelPair) bool { return slices.Contains(topics, l.GetValue()) }) {
				continue
			}
			total += sign * float64(series.GetHistogram().GetSampleCount())
			for _, bucket := range series.GetHistogram().GetBucket() {
				counts[bucket.GetUpperBound()] += sign * float64(bucket.GetCumulativeCount())
			}
		}
	}
	for _, bound := range slices.Sorted(maps.Keys(counts)) {
		if counts[bound] >= 0.99*total {
			return time.Duration(bound * float64(time.Second))
		}
	}
	return time.Minute
}
