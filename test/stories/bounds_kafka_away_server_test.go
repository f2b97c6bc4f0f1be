//go:build !unit

package stories

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// outage is Kafka being away while rows are written at a rate.
type outage struct {
	rate     float64
	away     time.Duration
	inFlight int
	catchUp  float64 // rows a second that the catching up must reach, 0 for any
	memory   uint64  // bytes that it may take at most
}

func (o outage) run(t *testing.T) {
	s := newStage(t, harness.Cast{Kafka: rig.Kafka(t, rig.Own()), Topics: 3}, "limits.in_flight", o.inFlight)
	finish := s.Writing(func(cfg *workload.Config) { cfg.Rate, cfg.MinBytes, cfg.MaxBytes, cfg.Headers = o.rate, 200, 400, 0 })
	s.Committed(int(o.rate))
	s.Cast.Kafka.Stop(t)
	s.flat(o.away)
	code, _ := s.relay.Fetch("/livez")
	assert.Equal(t, http.StatusOK, code, "a relay without Kafka is alive")
	assert.Zero(t, s.Number("SELECT COUNT(*) FROM "+s.Tables[0]+" WHERE status NOT IN (0, 1) OR retry_count > 0"), "an outage spends no retries")
	s.Cast.Kafka.Start(t)
	o.catchingUp(s)
	finish()
	// The broker was stopped with requests on their way: those may be in it twice.
	v := s.Exact(time.Minute, oracle.Options{Duplicates: true})
	assert.LessOrEqual(t, v.Duplicates, o.inFlight, "no more than was unacked")
	s.CaughtUp(15 * time.Second)
	s.memory(o.memory)
}

// flat lets time go by and asserts that the relay's memory does not grow in the last two thirds of it.
func (s *stage) flat(d time.Duration) {
	s.t.Helper()
	var samples []uint64
	tick := time.NewTicker(d / 60)
	defer tick.Stop()
	for range 60 {
		<-tick.C
		samples = append(samples, s.relay.Memory().Now)
	}
	second, third := slices.Max(samples[20:40]), slices.Max(samples[40:])
	s.t.Logf("Kafka away for %s: memory at most %.1f MiB in the second third, %.1f MiB in the last", d, float64(second)/(1<<20), float64(third)/(1<<20))
	assert.Less(s.t, third, second+second/10+(8<<20), "memory grows while Kafka is away")
}

// catchingUp waits until the backlog is consumed, and measures that.
func (o outage) catchingUp(s *stage) {
	s.t.Helper()
	begun, base := time.Now(), s.Log.Distinct()
	backlog := s.Ledger.Counts().Committed - base
	s.Seen(base+1, time.Minute)
	first := time.Now()
	harness.Eventually(s.t, 4*time.Minute, "the backlog consumed", func() (bool, string) {
		behind := s.Ledger.Counts().Committed - s.Log.Distinct()
		return float64(behind) < o.rate/4, fmt.Sprintf("%d behind", behind)
	})
	rate := float64(s.Log.Distinct()-base) / time.Since(first).Seconds()
	s.t.Logf("backlog of %d: first message %s after the brokers were back, then %.0f rows/s for %s, while %.0f/s came in",
		backlog, first.Sub(begun).Round(10*time.Millisecond), rate, time.Since(first).Round(10*time.Millisecond), o.rate)
	assert.Greater(s.t, rate, o.catchUp, "rows a second while catching up")
}

// TestKafkaAway is TestKafkaAwayFor5Minutes, small.
func TestKafkaAway(t *testing.T) {
	t.Parallel()
	outage{rate: 300, away: 20 * time.Second, inFlight: 500, memory: 100 << 20}.run(t)
}
