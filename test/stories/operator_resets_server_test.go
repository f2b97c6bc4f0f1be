//go:build !unit

package stories

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestResetWhileTheRelayRuns: without --force it is refused; with it the running relay goes on from the new position, and
// does not write its own over it.
func TestResetWhileTheRelayRuns(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Silent: true})
		relay := s.Start()
		finish := s.Writing(func(cfg *workload.Config) { cfg.Rate = 200 })
		s.Committed(200)
		reset := func(more ...string) harness.Outcome {
			return harness.Command(t, s.Settings, append([]string{"checkpoint", "reset", "--to", "now"}, more...)...)
		}
		before := s.Epoch()
		refused := reset("--yes")
		assert.NotZero(t, refused.Code)
		assert.Contains(t, refused.Stderr, "--force")
		dry := reset("--dry-run")
		assert.Zero(t, dry.Code, dry.Stderr)
		assert.Contains(t, dry.Stderr, "nothing was changed")
		assert.Equal(t, 2, reset("--yes", "--source", "nobody").Code)
		assert.Equal(t, before, s.Epoch())

		for range 2 {
			done := reset("--yes", "--force", "--reason", "a drill")
			assert.Zero(t, done.Code, done.Stderr)
		}
		relay.WaitLog(15*time.Second, "leadership ends")
		s.Leads(relay)
		s.Committed(200)
		finish()
		s.Sampler.Forget()
		s.CaughtUp(20 * time.Second)
		assert.Greater(t, s.Epoch(), before)
		// Who forces the position forward under a relay that lags gives up the order of what lies between, nothing else.
		for _, f := range s.Judge(20*time.Second, oracle.Options{Duplicates: true}).Faults {
			assert.Equal(t, oracle.Inverted, f.Kind, f.String())
		}
		history := harness.Command(t, s.Settings, "checkpoint", "history")
		assert.Contains(t, history.Stdout, "a drill")
	})
}

// TestResetForward: a hundred rows are not read yet when the checkpoint is moved past them. The command says so, the
// history keeps it, and the table brings them.
func TestResetForward(t *testing.T) {
	inModes(t, func(t *testing.T, start starter, silent bool) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Silent: silent})
		relay := s.Start()
		s.CaughtUp(15 * time.Second)
		code, _ := relay.Stop()
		require.Zero(t, code)
		s.Post(s.DB, harness.Numbered("unread", 100)...)
		plan := harness.Command(t, s.Settings, "checkpoint", "reset", "--to", "now")
		assert.Zero(t, plan.Code, plan.Stderr)
		assert.Contains(t, plan.Stdout, "100")
		t.Log(plan.Stdout)
		done := harness.Command(t, s.Settings, "checkpoint", "reset", "--to", "now", "--yes", "--reason", "a drill")
		require.Zero(t, done.Code, done.Stderr)
		s.Sampler.Forget()
		s.Start()
		v := s.Exact(20*time.Second, oracle.Options{})
		assert.Equal(t, 100, v.Swept)
		history := harness.Command(t, s.Settings, "checkpoint", "history")
		assert.Contains(t, history.Stdout, "a drill")
	})
}

// TestConfiguredStartIsForTheFirstOnly: a place to begin at is configured, and a newer checkpoint is saved. The saved one
// counts at each start.
func TestConfiguredStartIsForTheFirstOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t, rig.Own()), Silent: true})
		s.Set("checkpoint.start", "earliest")
		for round := range 3 {
			relay := s.Start()
			if round > 0 {
				assert.Contains(t, relay.Log(), `"recovery":"resumed"`)
			}
			s.Post(s.DB, harness.Numbered(fmt.Sprintf("m-%d", round), 20)...)
			s.Seen(20*round+20, 30*time.Second)
			s.CaughtUp(15 * time.Second)
			code, _ := relay.Stop()
			require.Zero(t, code)
		}
		s.Exact(15*time.Second, oracle.Options{})
	})
}
