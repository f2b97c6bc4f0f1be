//go:build !unit

package recovery

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestMain runs more tests at once than there are cores: most of their time is waiting.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

type starter func(t testing.TB, opts ...rig.Option) *rig.Server

var both = map[string]starter{"MySQL": rig.MySQL, "MariaDB": rig.MariaDB}

// patience is how long anything may take on a machine that is busy with other tests.
const patience = 45 * time.Second

// scene is a scene with the words that these tests share.
type scene struct {
	*harness.Scene
	t *testing.T
}

func newScene(t *testing.T, c harness.Cast) *scene {
	t.Helper()
	return &scene{Scene: harness.NewScene(t, c), t: t}
}

// settle starts a relay, lets it send letters, and stops it once the checkpoint covers them.
func (s *scene) settle(prefix string, n int) {
	s.t.Helper()
	r := s.Start()
	before := s.Log.Distinct()
	s.Post(s.DB, harness.Numbered(prefix, n)...)
	s.Seen(before+n, patience)
	s.CaughtUp(patience)
	s.stop(r)
}

func (s *scene) stop(r *harness.Relay) {
	s.t.Helper()
	code, _ := r.Stop()
	require.Zero(s.t, code, r.Log())
}

// recovered waits until the relay has told that a recovery of the kind has ended, in the log with what to do, in status, in
// readiness and in the metrics, and returns what it cost.
func (s *scene) recovered(r *harness.Relay, kind string) relay.Recovery {
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

// logged waits for a text in the log.
func logged(t *testing.T, r *harness.Relay, text string) {
	t.Helper()
	harness.Eventually(t, patience, "a log line with "+text, func() (bool, string) {
		log := r.Log()
		return strings.Contains(log, text), log[max(0, len(log)-500):]
	})
}

// unready waits until /readyz says no with a reason.
func unready(t *testing.T, r *harness.Relay, reason string) {
	t.Helper()
	harness.Eventually(t, patience, "not ready because of "+reason, func() (bool, string) {
		code, body := r.Fetch("/readyz?verbose")
		return code == 503 && strings.Contains(body, reason), body
	})
}

// end returns the server's binlog end.
func (s *scene) end() position.Position {
	s.t.Helper()
	end, err := harness.BinlogEnd(s.t.Context(), s.DB, s.Cast.SQL.Flavor)
	require.NoError(s.t, err)
	return end
}
