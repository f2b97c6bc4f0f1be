//go:build !unit

package stories

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// blockage keeps the relay from marking rows while others are written at a rate.
type blockage struct {
	rate   float64
	hold   time.Duration
	strict bool // publishing takes less than twice as long meanwhile
	// tables are those that can still be written to.
	tables func(*stage) []string
	// begin lets nobody mark the letters, which are pending; the returned function ends that.
	begin func(s *stage, letters []harness.Letter) (end func())
}

// run compares how long publishing takes before and while rows can't be marked.
func (b blockage) run(t *testing.T, server *rig.Server) {
	s := newStage(t, harness.Cast{SQL: server, Tables: 2})
	for i, table := range s.Tables { // as tables in use: a server that does not name columns is asked for a table's first row
		s.Post(s.DB, harness.Letter{ID: fmt.Sprintf("opens-%d", i), Table: table})
	}
	s.Seen(len(s.Tables), 15*time.Second)
	before := b.write(s, "before")
	s.CaughtUp(15 * time.Second)
	end := b.begin(s, s.unread())
	committed := s.Ledger.Counts().Committed
	while := b.write(s, "while")
	written := s.Ledger.Counts().Committed - committed
	m, err := s.relay.Metrics()
	if assert.NoError(t, err) {
		// What was written, not what should have been: a busy machine writes less.
		assert.GreaterOrEqual(t, m.Sum("unmarked_messages"), float64(written)/2, "the rows can't be marked: else this shows nothing")
		t.Logf("rows can't be marked for %s: p99 from commit to consumer %s before, %s meanwhile, %.0f unmarked at its end",
			b.hold, before, while, m.Sum("unmarked_messages"))
	}
	end()
	v := s.Exact(time.Minute, oracle.Options{}) // nothing twice, no retries spent
	s.ByStream(v)
	s.CaughtUp(20 * time.Second)
	m, err = s.relay.Metrics()
	if assert.NoError(t, err) {
		assert.Zero(t, m.Sum("source_reconnects_total"), "it is no reason to begin anew")
	}
	s.memory(bounded)
	if b.strict {
		assert.Less(t, while, 2*before, "p99 from commit to consumer")
	}
}

// write writes for the blockage's time, waits until all of it is consumed, and returns the 99th percentile.
func (b blockage) write(s *stage, prefix string) time.Duration {
	s.t.Helper()
	finish := s.Writing(func(cfg *workload.Config) {
		cfg.Prefix, cfg.Rate, cfg.MaxBytes, cfg.Writers, cfg.MaxTxn = prefix, b.rate, 800, 4, 4
		if b.tables != nil {
			cfg.Tables = b.tables(s)
		}
	})
	pass(s.t.Context(), b.hold)
	finish()
	s.Seen(s.Ledger.Counts().Committed, 10*time.Second)
	return s.p99(prefix)
}

// unread commits letters that the relay does not know of yet: it is frozen and has to be resumed.
func (s *stage) unread() []harness.Letter {
	s.t.Helper()
	s.relay.Pause()
	letters := harness.Numbered("blocked", 20)
	s.Post(s.DB, letters...)
	return letters
}

// tableLock locks the letters' whole table, so that the other one has to do for writing.
func tableLock(s *stage, _ []harness.Letter) (end func()) {
	session := s.Session("LOCK TABLES " + s.Tables[0] + " WRITE")
	s.relay.Resume()
	return func() { s.Exec(session, "UNLOCK TABLES") }
}

// rowLock holds the letters' rows in a transaction.
func rowLock(s *stage, letters []harness.Letter) (end func()) {
	session := s.Session("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION")
	for _, l := range letters {
		s.Exec(session, "SELECT id FROM "+s.Tables[0]+" WHERE msg_id = ? FOR UPDATE", l.ID)
	}
	s.relay.Resume()
	return func() { s.Exec(session, "ROLLBACK") }
}

// readOnly makes the server read-only for everybody but its administrator, who writes, and at last for him too.
func readOnly(s *stage, _ []harness.Letter) (end func()) {
	s.Exec(s.DB, "SET GLOBAL read_only = ON")
	s.relay.Resume()
	return func() {
		if s.Cast.SQL.Flavor == rig.FlavorMySQL {
			s.Exec(s.DB, "SET GLOBAL super_read_only = ON")
			pass(s.t.Context(), time.Second)
			s.Exec(s.DB, "SET GLOBAL super_read_only = OFF")
		}
		s.Exec(s.DB, "SET GLOBAL read_only = OFF")
	}
}

func unlocked(s *stage) []string { return s.Tables[1:] }

// TestMarksWait is TestMarksWaitFor30s, small.
func TestMarksWait(t *testing.T) {
	t.Parallel()
	small := func(b blockage) blockage { b.rate, b.hold = 200, 4*time.Second; return b }
	t.Run("TableLocked", func(t *testing.T) {
		t.Parallel()
		small(blockage{begin: tableLock, tables: unlocked}).run(t, rig.MySQL(t))
	})
	t.Run("TableLockedMariaDB", func(t *testing.T) {
		t.Parallel()
		// Any DDL that names a table like ours has its columns read again where the binlog does not name them, which a locked
		// table does not allow: other stories must not share this server.
		small(blockage{begin: tableLock, tables: unlocked}).run(t, rig.MariaDB(t, rig.Own()))
	})
	t.Run("RowsLocked", func(t *testing.T) {
		t.Parallel()
		small(blockage{begin: rowLock}).run(t, rig.MariaDB(t))
	})
	t.Run("ReadOnly", func(t *testing.T) {
		t.Parallel()
		small(blockage{begin: readOnly}).run(t, rig.MySQL(t, rig.Own()))
	})
}

// TestUnmarkedBoundsPublishing: rows that are published and can't be marked are bounded, and what waits behind that bound
// comes once they can.
func TestUnmarkedBoundsPublishing(t *testing.T) {
	t.Parallel()
	const unmarked, inFlight = 1000, 500
	s := newStage(t, harness.Cast{}, "limits.unmarked", unmarked, "limits.in_flight", inFlight)
	end := rowLock(s, s.unread())
	finish := s.Writing(func(cfg *workload.Config) { cfg.Rows, cfg.MaxBytes = 4000, 800 })
	finish()
	s.Seen(unmarked, 20*time.Second)
	s.Quiet()
	assert.LessOrEqual(t, s.Log.Distinct(), unmarked+inFlight, "limits.unmarked")
	end()
	s.Exact(time.Minute, oracle.Options{})
	s.CaughtUp(15 * time.Second)
}
