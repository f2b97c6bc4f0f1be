//go:build !unit

package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// wire is a proxy that can drop what goes through it without a word to either end.
type wire struct {
	t     *testing.T
	proxy *toxiproxy.Proxy
	Addr  string
}

func newWire(t *testing.T, upstream string) *wire {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	w := &wire{t: t, proxy: toxiproxy.NewProxy(server, "wire", harness.FreeAddr(t), upstream)}
	require.NoError(t, w.proxy.Start())
	t.Cleanup(w.proxy.Stop)
	w.Addr = w.proxy.Listen
	return w
}

// drop swallows what goes in a direction ("upstream", "downstream"), on the connections that there are and on new ones.
func (w *wire) drop(directions ...string) {
	w.t.Helper()
	for _, d := range directions {
		_, err := w.proxy.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(`{"name":"drop-%s","type":"timeout","stream":%q,"attributes":{"timeout":0}}`, d, d)))
		require.NoError(w.t, err)
	}
}

// heal lets new connections through; those that lost something stay dead.
func (w *wire) heal(directions ...string) {
	w.t.Helper()
	for _, d := range directions {
		require.NoError(w.t, w.proxy.Toxics.RemoveToxic(w.t.Context(), "drop-"+d))
	}
}

// point sends what connects from now on elsewhere and cuts what is connected.
func (w *wire) point(upstream string) {
	w.t.Helper()
	w.proxy.Stop()
	w.proxy.Upstream = upstream
	require.NoError(w.t, w.proxy.Start())
}

// TestFailoverToAReplica: an address that moves between servers moves to one with another uuid and other file names. The
// stream goes on by GTID, and the checkpoint is saved although its file sorts before the old one.
func TestFailoverToAReplica(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		primary := start(t, rig.Own())
		replica := primary.Replica(t, rig.Args("--log-bin=aaa-bin", "--log-slave-updates=1"))
		s := harness.NewScene(t, harness.Cast{SQL: primary, Silent: true})
		w := newWire(t, primary.Addr)
		s.Set("source.primary.address", w.Addr)
		relay := s.Start()
		s.Post(s.DB, harness.Numbered("before", 20)...)
		s.Seen(20, 15*time.Second)
		s.CaughtUp(15 * time.Second)
		relay.Pause()
		s.Post(s.DB, harness.Numbered("last", 10)...)
		replica.CatchUp(t, primary)
		primary.Kill(t)
		w.point(replica.Addr)
		promote(s, replica)
		relay.Resume()
		s.Post(s.DB, harness.Numbered("after", 20)...)
		s.Seen(50, 30*time.Second)
		v := s.Exact(15*time.Second, oracle.Options{})
		s.ByStream(v)
		s.CaughtUp(15 * time.Second)
		assert.Contains(t, s.Saved().File, "aaa-bin")
	})
}

// TestHalfOpenConnection: packets are dropped without a word. The reader notices and says so; a link on which nothing but
// heartbeats goes is left alone.
func TestHalfOpenConnection(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		for name, directions := range map[string][]string{"ToUs": {"downstream"}, "BothWays": {"upstream", "downstream"}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				server := start(t)
				s := harness.NewScene(t, harness.Cast{SQL: server, Silent: true})
				w := newWire(t, server.Addr)
				s.Set("source.replica.address", w.Addr)
				relay := s.Start()
				pass(t.Context(), 12*time.Second) // longer than a read may take
				assert.Zero(t, metric(relay, "source_reconnects_total"))
				w.drop(directions...)
				s.Post(s.DB, harness.Numbered("dropped", 10)...)
				unready(t, relay, 40*time.Second, "")
				assert.Positive(t, metric(relay, "source_reconnects_total"))
				assert.Zero(t, metric(relay, "source_connected"))
				w.heal(directions...)
				s.Seen(10, 30*time.Second)
				v := s.Exact(15*time.Second, oracle.Options{})
				s.ByStream(v)
			})
		}
	})
}

// TestReconnectsAsOftenAsItTakes: its connection to the binlog is killed again and again, then the server is away for a
// while. Nothing is left behind by all the reconnecting.
func TestReconnectsAsOftenAsItTakes(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t, rig.Own()), Silent: true})
		relay := s.Start()
		s.Post(s.DB, harness.Numbered("before", 5)...)
		s.Seen(5, 15*time.Second)
		s.CaughtUp(15 * time.Second)
		before := goroutines(t, relay)
		for cycle := range 20 {
			killDump(t, s)
			s.Post(s.DB, harness.Letter{ID: fmt.Sprintf("cycle-%d", cycle), Key: "k"})
			s.Seen(5+cycle+1, 20*time.Second)
		}
		assert.GreaterOrEqual(t, metric(relay, "source_reconnects_total"), 20.0)
		s.Cast.SQL.Stop(t)
		pass(t.Context(), 8*time.Second)
		s.Cast.SQL.Start(t)
		s.Post(s.DB, harness.Numbered("after", 5)...)
		begun := time.Now()
		s.Seen(30, 30*time.Second)
		t.Logf("streams %s after the server is back", time.Since(begun).Round(10*time.Millisecond))
		v := s.Exact(15*time.Second, oracle.Options{})
		s.ByStream(v)
		s.Leads(relay)
		harness.Eventually(t, 15*time.Second, "as many goroutines as before", func() (bool, string) {
			n := goroutines(t, relay)
			return n <= before+4, fmt.Sprintf("%d before, %d now", before, n)
		})
	})
}

func goroutines(t *testing.T, r *harness.Relay) int {
	t.Helper()
	m, err := r.Metrics()
	require.NoError(t, err)
	return int(m["go_goroutines"].GetMetric()[0].GetGauge().GetValue())
}

// killDump kills the connection on which the relay reads the binlog, once it has one.
func killDump(t *testing.T, s *harness.Scene) {
	t.Helper()
	eventually(t, 20*time.Second, "a binlog connection", func() bool {
		for _, session := range rig.Sessions(t, s.DB) {
			if session.User == s.User && strings.HasPrefix(session.Command, "Binlog Dump") {
				_, err := s.DB.ExecContext(t.Context(), fmt.Sprintf("KILL %d", session.ID))
				return err == nil
			}
		}
		return false
	})
}

// TestColdPasswordCache: after a restart the server knows no password, and without TLS each kind of connection has to
// prove it in full.
func TestColdPasswordCache(t *testing.T) {
	t.Parallel()
	s := harness.NewScene(t, harness.Cast{SQL: rig.MySQL(t, rig.Own())})
	s.Set("source.primary.tls", "off")
	relay := s.Start()
	s.Post(s.DB, harness.Numbered("before", 5)...)
	s.Seen(5, 15*time.Second)
	s.Cast.SQL.Restart(t)
	s.Post(s.DB, harness.Numbered("after", 5)...)
	s.Seen(10, 30*time.Second)
	s.Post(s.Session("SET SESSION sql_log_bin = 0"), harness.Letter{ID: "unlogged", Unlogged: true})
	v := s.Exact(30*time.Second, oracle.Options{})
	assert.Equal(t, 1, v.Swept)
	s.Leads(relay)
	s.CaughtUp(15 * time.Second)
}

// TestNothingAnswers: the whole server is behind the wire. Once it answers again, the relay goes on by itself.
func TestNothingAnswers(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		server := start(t)
		s := harness.NewScene(t, harness.Cast{SQL: server, Silent: true})
		w := newWire(t, server.Addr)
		s.Set("source.primary.address", w.Addr)
		relay := s.Start()
		s.Post(s.DB, harness.Numbered("before", 5)...)
		s.Seen(5, 15*time.Second)
		s.CaughtUp(15 * time.Second)
		w.drop("upstream", "downstream")
		s.Post(s.DB, harness.Numbered("dropped", 10)...)
		relay.WaitLog(30*time.Second, "leadership lost")
		unready(t, relay, 40*time.Second, "")
		pass(t.Context(), 5*time.Second)
		code, body := relay.Fetch("/readyz")
		assert.Equal(t, 503, code, "it is not ready once and then again: %s", body)
		w.heal("upstream", "downstream")
		s.Seen(15, 40*time.Second)
		v := s.Exact(15*time.Second, oracle.Options{})
		s.ByStream(v)
	})
}
