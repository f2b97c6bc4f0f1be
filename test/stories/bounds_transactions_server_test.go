//go:build !unit

package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/race"
)

// stage is a scene whose relay's memory is watched from one process to the next.
type stage struct {
	*harness.Scene
	t     *testing.T
	relay *harness.Relay
	peak  uint64
}

// newStage starts a relay; set are settings that differ from the defaults.
func newStage(t *testing.T, c harness.Cast, set ...any) *stage {
	t.Helper()
	c.Patient = true
	s := &stage{Scene: harness.NewScene(t, c), t: t}
	s.Set(set...)
	s.relay = s.Start()
	s.CaughtUp(15 * time.Second)
	return s
}

// again kills the relay and starts the next one.
func (s *stage) again() {
	s.t.Helper()
	peak := s.relay.Memory().Peak
	s.peak = max(s.peak, peak)
	s.t.Logf("killed with a memory of %.1f MiB at its highest", float64(peak)/(1<<20))
	s.relay.Kill()
	s.relay = s.Launch()
}

// bounded is how many bytes of memory a relay may take whatever comes.
const bounded = 256 << 20

// memory asserts that no process of the relay took more than it may.
func (s *stage) memory(limit uint64) {
	s.t.Helper()
	last := s.relay.Memory().Peak
	s.peak = max(s.peak, last)
	s.t.Logf("memory: %.1f MiB at its highest, the last process %.1f MiB", float64(s.peak)/(1<<20), float64(last)/(1<<20))
	if race.Enabled {
		limit *= 4 // the race detector takes several times the memory
	}
	assert.Less(s.t, s.peak, limit, "resident memory")
}

// small writes a lively mixture at a rate until finish.
func (s *stage) small(prefix string, rate float64) (finish func() workload.Stats) {
	s.t.Helper()
	return s.Writing(func(cfg *workload.Config) { cfg.Prefix, cfg.Rate, cfg.Writers, cfg.MaxBytes = prefix, rate, 4, 800 })
}

// together writes one transaction of so many rows of a size.
func (s *stage) together(prefix string, rows, bytes int) (finish func() workload.Stats) {
	s.t.Helper()
	return s.Writing(func(cfg *workload.Config) {
		cfg.Prefix, cfg.Rows, cfg.MinTxn, cfg.MaxTxn, cfg.Writers, cfg.Seed = prefix, rows, rows, rows, 1, 2
		cfg.MinBytes, cfg.MaxBytes, cfg.Batch, cfg.Keys = bytes, bytes, min(500, 1+(4<<20)/bytes), 1000
		cfg.Orders, cfg.Rollbacks, cfg.Savepoints, cfg.Headers, cfg.TxnTimeout = "", 0, 0, 0, 10*time.Minute
	})
}

// seen counts the different messages with a prefix that were consumed.
func (s *stage) seen(prefix string) int {
	n := 0
	for id := range s.Log.IDs() {
		if strings.HasPrefix(id, prefix) {
			n++
		}
	}
	return n
}

// p99 is a run's 99th percentile from commit to the consumer, of what was consumed so far.
func (s *stage) p99(prefix string) time.Duration {
	return oracle.LatencyOfRun(s.Ledger, s.Log.Records(), prefix).P99
}

// giant is a transaction that is far larger than what the relay may keep of it.
type giant struct {
	rows, bytes  int
	fat, fatSize int // rows of another one, and their size
	limit        time.Duration
}

// run writes the transaction among small ones, and looks at the relay in the middle of reading it and of publishing it,
// where it is killed.
func (g giant) run(t *testing.T) {
	s := &stage{Scene: harness.NewScene(t, harness.Cast{Topics: 3, Patient: true}), t: t}
	tap := harness.NewTap(t, s.Cast.SQL.Addr)
	s.Set("source.primary.address", tap.Addr)
	s.relay = s.Start()
	s.CaughtUp(15 * time.Second)
	finish := s.small("small", 200)
	// Between reading and publishing lies the commit event, which is the last one.
	half := tap.HoldAfter(int64(g.rows) * int64(g.bytes) / 2)
	written := s.together("giant", g.rows, g.bytes)
	select {
	case <-half:
	case <-time.After(g.limit):
		t.Fatal("the transaction's first half was not read")
	}
	written()
	pass(t.Context(), time.Second)
	assert.Zero(t, s.seen("giant"), "half of the transaction was read, and some of it is published already")
	base := s.Log.Distinct()
	s.peak = max(s.peak, s.relay.Memory().Peak)
	t.Logf("half read: memory %.1f MiB at its highest", float64(s.peak)/(1<<20))
	tap.Release()
	released := time.Now()
	for _, part := range []int{10, 2} {
		s.Seen(base+g.rows/part, g.limit)
		s.again()
	}
	s.Seen(base+g.rows, g.limit)
	t.Logf("all of %d rows published %s after the second half could be read, with two kills", g.rows, time.Since(released).Round(10*time.Millisecond))
	s.together("fat", g.fat, g.fatSize)()
	s.Seen(s.Ledger.Counts().Committed, g.limit)
	finish()
	v := s.Exact(g.limit, oracle.Options{Duplicates: true})
	assert.LessOrEqual(t, v.Duplicates, 2*20_000, "no more for a kill than may be unacked, limits.in_flight")
	s.CaughtUp(15 * time.Second)
	s.memory(bounded)
}

// TestLargeTransaction is TestMillionRowTransaction, small.
func TestLargeTransaction(t *testing.T) {
	t.Parallel()
	giant{rows: 60_000, bytes: 400, fat: 60, fatSize: 60_000, limit: time.Minute}.run(t)
}

// foreign writes rows into a table that is none of ours, with one message among them, all in one transaction. The relay is
// killed while it reads it.
func foreign(t *testing.T, rows int, limit time.Duration) {
	s := newStage(t, harness.Cast{})
	finish := s.small("small", 200)
	other := s.Database + ".other"
	s.Exec(s.DB, "CREATE TABLE "+other+" (id BIGINT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(100) NOT NULL)")
	tx, err := s.DB.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	s.Exec(tx, "INSERT INTO "+other+" (v) VALUES (REPEAT('x', 60))")
	letter := harness.Letter{ID: "among-strangers", Key: "k"}
	for n := 1; n < rows; {
		more := min(n, rows-n, 100_000) // a statement has to end within the patience of the pool
		s.Exec(tx, fmt.Sprintf("INSERT INTO %s (v) SELECT v FROM %s LIMIT %d", other, other, more))
		if n += more; n >= rows/2 && letter.Table == "" {
			letter.Table = s.Tables[0]
			s.Insert(tx, letter)
		}
	}
	sent := time.Now()
	require.NoError(t, tx.Commit())
	s.Enter(oracle.Committed, sent, letter)
	committed := time.Now()
	for _, after := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond} {
		pass(t.Context(), after)
		s.again()
	}
	harness.Eventually(t, limit, "the message among strangers", func() (bool, string) { return s.Log.Seen(letter.ID) > 0, "" })
	t.Logf("the message came %s after the commit, with two kills", time.Since(committed).Round(10*time.Millisecond))
	finish()
	v := s.Exact(limit, oracle.Options{Duplicates: true})
	assert.LessOrEqual(t, v.Duplicates, 500, "what is unacked of 200 rows a second")
	s.CaughtUp(15 * time.Second)
	s.memory(bounded)
}

// TestLargeTransactionOfAnotherTable is TestTwoMillionRowsOfAnotherTable, small.
func TestLargeTransactionOfAnotherTable(t *testing.T) {
	t.Parallel()
	foreign(t, 120_000, time.Minute)
}
