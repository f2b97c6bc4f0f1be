//go:build !unit

package stories

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/test/harness"
)

// patience is how long anything may take on a machine that is busy with other tests.
const patience = 45 * time.Second

// recovery is a scene in which the relay loses its footing: the checkpoint is gone or nonsense, the binlog is purged or begins
// anew, another server answers, a table or its columns change. Every story also asserts what the operator is told: log,
// readiness, status and metrics. docs/RECOVERY.md lists them all.
type recovery struct {
	*harness.Scene
	t *testing.T
}

func newRecovery(t *testing.T, c harness.Cast) *recovery {
	t.Helper()
	return &recovery{Scene: harness.NewScene(t, c), t: t}
}

// settle starts a relay, lets it send letters, and stops it once the checkpoint covers them.
func (s *recovery) settle(prefix string, n int) {
	s.t.Helper()
	r := s.Start()
	before := s.Log.Distinct()
	s.Post(s.DB, harness.Numbered(prefix, n)...)
	s.Seen(before+n, patience)
	s.CaughtUp(patience)
	s.stop(r)
}

func (s *recovery) stop(r *harness.Relay) {
	s.t.Helper()
	code, _ := r.Stop()
	require.Zero(s.t, code, r.Log())
}

// recovered waits until the relay has told that a recovery of the kind has ended, in the log with what to do, in status, in
// readiness and in the metrics, and returns what it cost.
func (s *recovery) recovered(r *harness.Relay, kind string) relay.Recovery {
	s.t.Helper()
	var found relay.Recovery
	harness.Eventually(s.t, patience, "recovery "+kind+" has ended", func() (bool, string) {
		all := recoveries(s.t, r)
		for _, one := range all {
			if one.Kind == kind && !one.Ended.IsZero() {
				found = one
				return true, ""
			}
		}
		return false, fmt.Sprint(all)
	})
	assert.NotEmpty(s.t, found.Detail)
	_, body := r.Fetch("/readyz?verbose")
	assert.Contains(s.t, body, "/recovery ok: ")
	m, err := r.Metrics()
	require.NoError(s.t, err)
	assert.Positive(s.t, m.Sum("last_recovery_timestamp_seconds", "kind", kind))
	assert.InDelta(s.t, found.LeftToSweeper, m.Sum("recovery_rows", "kind", kind, "outcome", "left_to_sweeper"), 0)
	if kind == "resumed" {
		return found
	}
	assert.NotEmpty(s.t, found.Advice)
	assert.Contains(s.t, body, kind)
	assert.Positive(s.t, m.Sum("recoveries_total", "kind", kind))
	assert.Contains(s.t, r.Log(), `"recovery":"`+kind+`"`)
	assert.Equal(s.t, 1, lines(r, `"message":"recovered"`, `"recovery":"`+kind+`"`), "told once")
	shown := harness.Command(s.t, s.Settings.With("console.listen", r.Console), "status")
	assert.Contains(s.t, shown.Stdout, kind+" (")
	return found
}

// recoveries returns what status says of them.
func recoveries(t *testing.T, r *harness.Relay) []relay.Recovery {
	t.Helper()
	var answer struct {
		Sources []struct{ Status relay.Status }
	}
	code, body := r.Fetch("/api/v1/status")
	if code == 0 {
		return nil
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer), body)
	require.NotEmpty(t, answer.Sources)
	return answer.Sources[0].Status.Recoveries
}

// lines counts the lines of the log that have all the texts.
func lines(r *harness.Relay, texts ...string) int {
	n := 0
	for line := range strings.Lines(r.Log()) {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			n++
		}
	}
	return n
}

// end returns the server's binlog end.
func (s *recovery) end() position.Position {
	s.t.Helper()
	end, err := harness.BinlogEnd(s.t.Context(), s.DB, s.Cast.SQL.Flavor)
	require.NoError(s.t, err)
	return end
}
