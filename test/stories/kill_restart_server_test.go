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
)

// restarts is how often a test of restarts does it.
const restarts = 10

// underLoad writes at a steady pace, so that the relay always has something in its hands.
func underLoad(cfg *workload.Config) { cfg.Rate, cfg.MaxTxn = 1000, 20 }

func TestRestartBySIGTERMUnderLoad(t *testing.T) {
	s := harness.NewScene(t, harness.Cast{Tables: 2, Topics: 3, Patient: true})
	relay := s.Start()
	finish := s.Writing(underLoad)
	for round := range restarts {
		s.Committed(300 + rand.IntN(500))
		code, took := relay.Stop()
		require.Zero(t, code, "round %d", round)
		assert.Less(t, took, 25*time.Second)
		s.Look()
		relay = s.Start()
	}
	finish()
	v := s.Exact(60*time.Second, oracle.Options{})
	assert.Zero(t, v.Duplicates)
	assert.Zero(t, v.Swept, "the stream missed rows and the sweeper sent them")
}

// TestRestartBySIGKILLUnderLoad kills the relay at any moment. Copies are allowed then, nothing else; and few of them,
// since the replay window is looked up in the table and in Kafka.
func TestRestartBySIGKILLUnderLoad(t *testing.T) {
	s := harness.NewScene(t, harness.Cast{Tables: 2, Topics: 3, Patient: true})
	relay := s.Start()
	s.CaughtUp(12 * time.Second)
	finish := s.Writing(underLoad)
	for range restarts {
		s.Committed(300 + rand.IntN(500))
		relay.Kill()
		s.Look()
		relay = s.Start()
	}
	finish()
	v := s.Exact(60*time.Second, oracle.Options{Duplicates: true})
	assert.LessOrEqual(t, v.Duplicates, v.Committed/100, "the replay window suppresses nearly all copies")
}

// TestKilledBeforeItsFirstCheckpoint finds rows in the table and no position, is killed as soon as it has saved one, and
// meets new rows of the same keys after that: the old ones must still go first. What the dead relay had claimed waits until its
// claims end, half a minute later.
func TestKilledBeforeItsFirstCheckpoint(t *testing.T) {
	s := harness.NewScene(t, harness.Cast{Topics: 2, Patient: true})
	load := func(prefix string, rows int) func(*workload.Config) {
		return func(cfg *workload.Config) {
			cfg.Rows, cfg.MaxTxn, cfg.Batch, cfg.Keys, cfg.Prefix, cfg.KeyPrefix = rows, 50, 50, 5, prefix, "k"
		}
	}
	s.Write(load("old", 5000))
	relay := s.Start()
	harness.Eventually(t, 20*time.Second, "a first checkpoint", func() (bool, string) {
		_, err := s.Sampler.Checkpoint.Read(t.Context())
		return err == nil, fmt.Sprint(err)
	})
	relay.Kill()
	s.Look()
	s.Start()
	s.Write(load("new", 500))
	s.Exact(60*time.Second, oracle.Options{Duplicates: true})
}
