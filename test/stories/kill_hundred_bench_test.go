//go:build bench && !unit

package stories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
)

// TestHundredKills measures what a SIGKILL costs under full load: 100 of them at random moments, at 3 000 rows a second in
// transactions of 1 to 50. It takes about four minutes.
func TestHundredKills(t *testing.T) {
	const kills = 100
	s := harness.NewScene(t, harness.Cast{Topics: 3, Patient: true})
	relay := s.Start()
	s.CaughtUp(12 * time.Second)
	finish := s.Writing(func(cfg *workload.Config) {
		cfg.Rate, cfg.MinTxn, cfg.MaxTxn, cfg.Batch, cfg.MaxBytes = 3000, 1, 50, 50, 800
	})
	s.Committed(3000)
	starts := make([]time.Duration, 0, kills)
	for range kills {
		harness.Eventually(t, 10*time.Second, "a random moment", after(time.Duration(300+rand.IntN(1700))*time.Millisecond))
		relay.Kill()
		begun := time.Now()
		relay = s.Launch()
		harness.Eventually(t, 20*time.Second, "a new message after the start", func() (bool, string) {
			m, err := relay.Metrics()
			if err != nil {
				return false, err.Error()
			}
			return m.Sum("messages_published_total") > 0, "none published"
		})
		starts = append(starts, time.Since(begun))
	}
	finish()
	v := s.Exact(2*time.Minute, oracle.Options{Duplicates: true})
	slices.Sort(starts)
	t.Logf("%d kills: %.2f copies a kill; start to the first new message p50 %s, p99 %s, max %s", kills,
		float64(v.Duplicates)/kills, starts[kills/2].Round(time.Millisecond), starts[kills*99/100-1].Round(time.Millisecond), starts[kills-1].Round(time.Millisecond))
	assert.Less(t, v.Duplicates, kills, "less than one copy a kill")
	assert.Less(t, starts[kills*99/100-1], 2*time.Second)
}

// after is true once d has passed.
func after(d time.Duration) func() (bool, string) {
	end := time.Now().Add(d)
	return func() (bool, string) { return time.Now().After(end), fmt.Sprintf("not %s yet", d) }
}
