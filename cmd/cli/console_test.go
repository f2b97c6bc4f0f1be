package cli_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/cmd/cli"
	"example.com/outbox-relay/internal/console"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/test/harness"
)

// source is a source of a relay that is only a console.
type source struct {
	live   error
	checks []console.Check
	status relay.Status
}

func (s *source) Name() string           { return s.status.Source }
func (s *source) Live() error            { return s.live }
func (s *source) Ready() []console.Check { return s.checks }
func (s *source) Status() any            { return s.status }

// answering starts a console and returns the configuration that finds it.
func answering(t *testing.T, sources ...console.Source) harness.Settings {
	t.Helper()
	settings := nowhere(t).With("console.token", "hunter2-token", "console.prefix", "/relay")
	listen, _ := settings["console.listen"].(string)
	c := console.New(console.Config{Listen: listen, Token: "hunter2-token", Prefix: "/relay", Version: "v1.2.3"}, http.NotFoundHandler(), sources, zerolog.Nop())
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second) // the test's has ended
		defer cancel()
		assert.NoError(t, c.Close(ctx))
	})
	return settings
}

// busy is a leader with something of everything.
func busy() *source {
	now := time.Now()
	return &source{
		checks: []console.Check{
			{Name: "role", Detail: "leader"},
			{Name: "mark", Err: errors.New("mark rows of app.local_message: lock wait timeout"), Degraded: true},
		},
		status: relay.Status{
			Source: "orders", Role: relay.RoleStream, Recovery: "resumed", Detail: "resumed at binlog.000003:4",
			StreamStatus: relay.StreamStatus{
				Connected: true, Read: "binlog.000003:9000", Safe: "binlog.000003:8000", GTID: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77", LagSeconds: 0.012,
				Saved: now.Add(-time.Second), Transactions: 3,
			},
			FlightStatus:  relay.FlightStatus{InFlight: 1200, InFlightBytes: 3 << 20, Unmarked: 17},
			WaitingStatus: relay.WaitingStatus{Topics: []relay.TopicStatus{{Name: "bills", State: "closed", Reason: "unknown topic\x1b[31m", Held: 4}}},
			Recoveries: []relay.Recovery{{
				Kind: "purged", Detail: "the server has purged binlog.000001", Began: time.Unix(1_800_000_000, 0), Ended: time.Unix(1_800_000_002, 0),
				From: "binlog.000001:4", To: "binlog.000003:4", Skipped: true, RecoveryRows: relay.RecoveryRows{LeftToSweeper: 30}, Advice: "keep binlogs longer",
			}},
			LastSweep: now.Add(-12 * time.Second), Errors: []string{"mark: lock wait timeout"},
		},
	}
}

func standby() *source {
	return &source{checks: []console.Check{{Name: "role", Detail: "standby"}}, status: relay.Status{Source: "bills", Role: relay.RoleStandby}}
}

var moving = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`"(started|checkpoint_saved|last_sweep|saved_at|at)": "[^"]+"`), `"$1": "TIME"`},
	{regexp.MustCompile(`(started|checkpoint_saved|last_sweep|saved_at|at): "20[^"]+"`), `$1: TIME`},
	{regexp.MustCompile(`((?:uptime|checkpoint_age|last_sweep_age|age|seconds_behind|oldest_pending|oldest)_seconds"?): [0-9.]+`), `$1: N`},
	{regexp.MustCompile(`((?:up|saved|sweep) +)[0-9.]+(?:ms|s)`), `${1}N`},
}

// still replaces what differs from run to run.
func still(text string) string {
	for _, m := range moving {
		text = m.find.ReplaceAllString(text, m.put)
	}
	return text
}

func TestStatus(t *testing.T) {
	t.Parallel()
	path := answering(t, busy(), standby()).Write(t)
	for _, format := range []string{"table", "json", "yaml"} {
		golden(t, "status-"+format, still(ok(t, "status", "--config", path, "-o", format)))
	}
}

func TestStatusOfOneSource(t *testing.T) {
	t.Parallel()
	settings := answering(t, busy(), standby())
	settings = settings.With("source.name", "bills")
	out := ok(t, "status", "--source", "bills", "--config", settings.Write(t))
	assert.Contains(t, out, "bills")
	assert.NotContains(t, out, "orders")
}

func TestStatusByURL(t *testing.T) {
	t.Parallel()
	settings := answering(t, standby())
	listen, _ := settings["console.listen"].(string)
	path := settings.With("console.listen", "", "console.prefix", "").Write(t)
	assert.Contains(t, ok(t, "status", "--config", path, "--url", "http://"+listen+"/relay"), "standby")
	assert.Equal(t, "ok\n", ok(t, "healthcheck", "--config", path, "--url", "http://"+listen+"/relay/"))
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	well := answering(t, busy(), standby()).Write(t)
	assert.Equal(t, "ok\n", ok(t, "healthcheck", "--config", well))
	assert.Equal(t, "ok\n", ok(t, "healthcheck", "--live", "--config", well))
	assert.JSONEq(t, `{"healthy":true,"asked":"/readyz"}`, ok(t, "healthcheck", "--config", well, "-o", "json"))

	ill := busy()
	ill.live = errors.New("the loops have not turned for 2m")
	ill.checks[0].Err = errors.New("starting")
	path := answering(t, ill).Write(t)
	for _, args := range []string{"healthcheck", "healthcheck --live"} {
		o := command(t, append(strings.Fields(args), "--config", path)...)
		assert.Equal(t, cli.ExitFailed, o.code)
		assert.Contains(t, o.err, "error: the relay is not well")
	}
	off := command(t, "healthcheck", "--config", nowhere(t).With("console.listen", "").Write(t))
	assert.Equal(t, cli.ExitFailed, off.code)
	assert.Contains(t, off.err, "set console.listen")
}

// The token is told to be wrong, and is not told.
func TestStatusWithAnotherToken(t *testing.T) {
	t.Parallel()
	path := answering(t, standby()).With("console.token", "hunter2-file").Write(t)
	o := command(t, "status", "--config", path)
	assert.Contains(t, o.err, "does not accept the token")
	assertSecret(t, o)
}

// While the primary is away the relay's console answers: it lives, it is not ready, and it says why.
func TestConsoleWhileThePrimaryIsAway(t *testing.T) {
	t.Parallel()
	path := nowhere(t).Write(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	code := make(chan int, 1) // size 1: the relay must be able to end
	go func() {
		code <- cli.Execute(ctx, []string{"run", "--config", path}, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	}()
	harness.Eventually(t, 20*time.Second, "the console lives", func() (bool, string) {
		o := command(t, "healthcheck", "--live", "--config", path)
		return o.code == cli.ExitOK, o.err
	})
	o := command(t, "healthcheck", "--config", path)
	assert.Equal(t, cli.ExitFailed, o.code)
	assert.Contains(t, o.err, "waiting for the primary")
	out := ok(t, "status", "--config", path)
	assert.Contains(t, out, "starting")
	assert.Contains(t, out, "waiting for the primary")
	stop()
	assert.Equal(t, cli.ExitOK, <-code)
}

// Watching shows the state again and again, and ends well when it is interrupted.
func TestStatusWatch(t *testing.T) {
	t.Parallel()
	path := answering(t, standby()).Write(t)
	o := commandWithin(t, 2*time.Second, "status", "--watch", "--every", "100ms", "--config", path)
	assert.Equal(t, cli.ExitOK, o.code)
	assert.Greater(t, strings.Count(o.out, "standby"), 1)
	assert.Greater(t, strings.Count(o.out, "---\n"), 1)
	assert.NotContains(t, o.out, "\x1b", "this is no terminal")
}
