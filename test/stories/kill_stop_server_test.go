//go:build !unit

package stories

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// These are the ways in which a session ends, each amid large transactions with few keys: what follows the first row
// that was not handed to the producer must not be handed over either, or it passes that row.

// largeTransactions is one writer with transactions of 500 rows of 20 keys.
func largeTransactions(cfg *workload.Config) {
	cfg.Writers, cfg.MinTxn, cfg.MaxTxn, cfg.Batch, cfg.Keys, cfg.Keyless = 1, 500, 500, 500, 20, 0
	cfg.Headers, cfg.MaxBytes, cfg.Rate = 0, 300, stopRate
}

// stopRate is how many rows a second are written. What comes while the relay is away is a backlog, amid which it is
// stopped again.
const stopRate = 2000

// stopping is a relay that is stopped again and again.
type stopping struct {
	*harness.Scene
	t     *testing.T
	relay *harness.Relay
}

func newStopping(t *testing.T, cast harness.Cast) *stopping {
	t.Helper()
	return &stopping{Scene: harness.NewScene(t, cast), t: t}
}

// rounds starts the relay, ends it in some way so many times while it is written to, and judges.
func (s *stopping) rounds(n int, opts oracle.Options, change func(*workload.Config), end func(round int)) *oracle.Verdict {
	s.t.Helper()
	if s.relay == nil {
		s.relay = s.Start()
	}
	s.CaughtUp(15 * time.Second)
	finish := s.Writing(change)
	for round := range n {
		amid(s.t, 700*time.Millisecond)
		end(round)
	}
	finish()
	return s.Exact(90*time.Second, opts)
}

// amid waits until a moment that nothing decides.
func amid(t *testing.T, most time.Duration) {
	t.Helper()
	pass(t.Context(), most/4+rand.N(most*3/4))
}

// restart stops the relay by SIGTERM and starts another.
func (s *stopping) restart() {
	s.t.Helper()
	code, took := s.relay.Stop()
	require.Zero(s.t, code)
	assert.Less(s.t, took, 25*time.Second)
	s.relay = s.Start()
}

// TestStoppedAmidLargeTransactions: SIGTERM, again and again. Nothing is lost, out of order, or repeated.
func TestStoppedAmidLargeTransactions(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := newStopping(t, harness.Cast{SQL: start(t)})
		s.rounds(40, oracle.Options{}, largeTransactions, func(int) { s.restart() })
	})
}

// TestLockKilledAmidLargeTransactions: the session that holds the leader's lock is killed, again and again, and one
// of two relays goes on. There may be copies, nothing else.
func TestLockKilledAmidLargeTransactions(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := newStopping(t, harness.Cast{SQL: start(t)})
		s.relay = s.Start()
		standby := s.Launch()
		s.rounds(20, oracle.Options{Duplicates: true}, largeTransactions, func(int) {
			epoch := s.Epoch()
			id, _ := lockConnection(t, s.Scene)
			s.Exec(s.DB, fmt.Sprintf("KILL %d", id))
			s.ledAnew(epoch, func() bool { return s.relay.Leads() || standby.Leads() })
		})
	})
}

// ledAnew waits until a leader of a later epoch has saved.
func (s *stopping) ledAnew(epoch int64, leads func() bool) {
	s.t.Helper()
	harness.Eventually(s.t, 30*time.Second, "somebody leads again", func() (bool, string) {
		now := s.Epoch()
		return now > epoch && leads(), fmt.Sprintf("epoch %d", now)
	})
}

// TestFencedAmidLargeTransactions: somebody else takes an epoch, as a relay that was away for a while would. The
// leader learns it by its next save.
func TestFencedAmidLargeTransactions(t *testing.T) {
	t.Parallel()
	s := newStopping(t, harness.Cast{})
	key := fmt.Sprint(s.Settings["redis.prefix"]) + s.Source + ":epoch"
	s.rounds(10, oracle.Options{Duplicates: true}, largeTransactions, func(int) {
		epoch := s.Epoch()
		redisCommand(t, s.Scene, "INCR", key)
		s.ledAnew(epoch, s.relay.Leads)
	})
}

// TestStoppedAmidTheReplay: SIGKILL, and SIGTERM while the next relay looks up what may have been sent.
func TestStoppedAmidTheReplay(t *testing.T) {
	t.Parallel()
	s := newStopping(t, harness.Cast{})
	v := s.rounds(10, oracle.Options{Duplicates: true}, largeTransactions, func(int) {
		s.relay.Kill()
		s.relay = s.Start()
		s.restart()
	})
	assert.LessOrEqual(t, v.Duplicates, v.Committed/100, "copies")
}

// TestStoppedAmidAHandBack: topics come into being while they are written to, and SIGTERM comes while the sweeper
// drains them, or while the stream holds what is new.
func TestStoppedAmidAHandBack(t *testing.T) {
	t.Parallel()
	s := newStopping(t, harness.Cast{Missing: 6})
	s.Set("retry.backoff", []string{"1s"})
	s.rounds(len(s.Missing), oracle.Options{Retries: true}, largeTransactions, func(round int) {
		s.Cast.Kafka.CreateTopic(t, s.Missing[round], 3, nil)
		amid(t, 2*time.Second)
		s.restart()
	})
}

// TestStoppedAmidStagedBodies: SIGTERM while bodies are read from Kafka.
func TestStoppedAmidStagedBodies(t *testing.T) {
	t.Parallel()
	s := newStopping(t, harness.Cast{})
	s.Exec(s.DB, "ALTER TABLE "+s.Tables[0]+" ADD COLUMN body_ref VARCHAR(320) NULL")
	stage, closeIt, err := harness.OpenStager(s.Cast.Kafka.Brokers, s.Cast.Kafka.Topic(t, 3))
	require.NoError(t, err)
	t.Cleanup(closeIt)
	s.rounds(10, oracle.Options{}, func(cfg *workload.Config) {
		largeTransactions(cfg)
		cfg.Staged, cfg.Stage = 0.2, stage
	}, func(int) { s.restart() })
}

// TestStoppedWhileKafkaIsAway: SIGTERM while Kafka is frozen. What it was given gets no answer, and may be there or
// not.
func TestStoppedWhileKafkaIsAway(t *testing.T) {
	t.Parallel()
	s := newStopping(t, harness.Cast{Kafka: rig.Kafka(t, rig.Own())})
	s.Set("shutdown.timeout", "2s")
	s.rounds(5, oracle.Options{Duplicates: true}, largeTransactions, func(int) {
		s.Cast.Kafka.Pause(t)
		amid(t, 500*time.Millisecond)
		code, _ := s.relay.Stop()
		require.Zero(t, code)
		s.Cast.Kafka.Resume(t)
		s.relay = s.Start()
	})
}

// TestStoppedWhileItBegins: the relay is told to end at any moment of its start.
func TestStoppedWhileItBegins(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t)})
		for i := range 12 {
			relay := s.Launch()
			relay.WaitLog(10*time.Second, "console listens")
			pass(t.Context(), time.Duration(i)*10*time.Millisecond)
			code, _ := relay.Stop()
			require.Zero(t, code, relay.Log())
		}
		s.Post(s.DB, harness.Numbered("m", 5)...)
		s.Start()
		s.Exact(45*time.Second, oracle.Options{})
	})
}
