//go:build !unit

package scenario

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
)

// TestS08CommittedXAIsSweptAtOnce: a prepared transaction that is committed is the sweeper's, which is woken for it however
// long it sleeps otherwise.
func TestS08CommittedXAIsSweptAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Silent: true})
		s.Set("sweep.interval", "24h")
		s.Start()
		s.CaughtUp(15 * time.Second)
		l := harness.Letter{ID: "committed", Unlogged: true}
		xid := fmt.Sprintf("'%s'", s.Source)
		session := s.Session("XA START " + xid)
		s.Insert(session, l)
		s.Exec(session, "XA END "+xid)
		s.Exec(session, "XA PREPARE "+xid)
		s.Exec(session, "XA COMMIT "+xid)
		s.Enter(oracle.Committed, time.Now(), l)
		v := s.Exact(30*time.Second, oracle.Options{})
		assert.Equal(t, 1, v.Swept)
	})
}

// TestS72RetriesDoNotWaitForTheSweepersInterval: the stream finds that a topic is missing, and the sweeper, which sleeps for
// long, is told. The retries come by their backoff, and the topic is drained soon after it was created.
func TestS72RetriesDoNotWaitForTheSweepersInterval(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Missing: 1, Silent: true})
		s.Set("retry.backoff", []string{"1s"}, "retry.jitter", 0, "sweep.interval", "24h")
		s.Start()
		s.CaughtUp(15 * time.Second)
		letters := harness.Numbered("m", 50)
		for i := range letters {
			letters[i].Topic = s.Missing[0]
		}
		s.Post(s.DB, letters...)
		// On a busy machine the stream lags, and then the sweeper leaves its turns out.
		eventually(t, 90*time.Second, "tried three times", func() bool {
			return s.Number("SELECT MAX(retry_count) FROM "+s.Tables[0]) >= 3
		})
		s.Cast.Kafka.CreateTopic(t, s.Missing[0], 1, nil)
		s.Exact(30*time.Second, oracle.Options{Retries: true})
	})
}

// TestS46StoppedWhileItBegins: the relay is told to end at any moment of its start.
func TestS46StoppedWhileItBegins(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t)})
		for i := range 12 {
			relay := s.Launch()
			logged(t, relay, 10*time.Second, "console listens")
			pass(t, time.Duration(i)*10*time.Millisecond)
			code, _ := relay.Stop()
			require.Zero(t, code, relay.Log())
		}
		s.Post(s.DB, harness.Numbered("m", 5)...)
		s.Start()
		s.Exact(45*time.Second, oracle.Options{})
	})
}

// TestS63S114NothingAnswers: the whole server is behind the wire. Once it answers again, the relay goes on by itself.
func TestS63S114NothingAnswers(t *testing.T) {
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
		unready(t, relay, 40*time.Second)
		pass(t, 5*time.Second)
		code, body := relay.Fetch("/readyz")
		assert.Equal(t, 503, code, "it is not ready once and then again: %s", body)
		w.heal("upstream", "downstream")
		s.Seen(15, 40*time.Second)
		v := s.Exact(15*time.Second, oracle.Options{})
		s.ByStream(v)
	})
}
