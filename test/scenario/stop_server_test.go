//go:build !unit

package scenario

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/oracle"
	"example.com/outbox-relay/test/workload"
)

// These are the ways in which a session ends, each amid large transactions with few keys: what follows the first row that was
// not handed to the producer must not be handed over either, or it passes that row.

// largeTransactions is one writer with transactions of 500 rows of 20 keys.
func largeTransactions(rate float64) func(*workload.Config) {
	return func(cfg *workload.Config) {
		cfg.Writers, cfg.MinTxn, cfg.MaxTxn, cfg.Batch, cfg.Keys, cfg.Keyless = 1, 500, 500, 500, 20, 0
		cfg.Headers, cfg.MaxBytes, cfg.Rate = 0, 300, rate
	}
}

// stopRate is how many rows a second are written. What comes while the relay is away is a backlog, amid which it is stopped again.
const stopRate = 2000

// amid waits until a stop comes at a moment that nothing decides.
func amid(t *testing.T) {
	t.Helper()
	pass(t, 200*time.Millisecond+rand.N(500*time.Millisecond))
}

// TestStoppedAmidLargeTransactions: SIGTERM, again and again. Nothing is lost, out of order, or repeated.
func TestStoppedAmidLargeTransactions(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t)})
		relay := s.Start()
		s.CaughtUp(15 * time.Second)
		finish := s.Writing(largeTransactions(stopRate))
		for range 40 {
			amid(t)
			code, took := relay.Stop()
			assert.Zero(t, code)
			assert.Less(t, took, 25*time.Second)
			relay = s.Start()
		}
		finish()
		s.Exact(60*time.Second, oracle.Options{})
	})
}

// TestLockKilledAmidLargeTransactions: the session that holds the leader's lock is killed, again and again, and one of two relays
// goes on. There may be copies, nothing else.
func TestLockKilledAmidLargeTransactions(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t)})
		relays := []*harness.Relay{s.Start(), s.Launch()}
		s.CaughtUp(15 * time.Second)
		finish := s.Writing(largeTransactions(stopRate))
		for range 20 {
			epoch := s.Epoch()
			amid(t)
			id, _ := lockConnection(t, s)
			s.Exec(s.DB, fmt.Sprintf("KILL %d", id))
			harness.Eventually(t, 30*time.Second, "one of them leads again", func() (bool, string) {
				now := s.Epoch()
				return now > epoch && (relays[0].Leads() || relays[1].Leads()), fmt.Sprintf("epoch %d", now)
			})
		}
		finish()
		s.Exact(60*time.Second, oracle.Options{Duplicates: true})
	})
}
