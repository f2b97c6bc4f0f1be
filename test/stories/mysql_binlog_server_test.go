//go:build !unit

package stories

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// histories are the ways in which a binlog is told apart.
var histories = map[string]func(t *testing.T) *rig.Server{
	"MySQL":             func(t *testing.T) *rig.Server { t.Helper(); return rig.MySQL(t, rig.Own()) },
	"MySQLWithoutGTIDs": func(t *testing.T) *rig.Server { t.Helper(); return rig.MySQL(t, withoutGTIDs) },
	"MariaDB":           func(t *testing.T) *rig.Server { t.Helper(); return rig.MariaDB(t, rig.Own()) },
}

var withoutGTIDs = rig.Args("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")

// broken are the ways in which the binlog can be cut off under the saved position while the relay is down. Rows are written
// before it and after it.
var broken = []struct {
	name, kind string
	cut        func(s *recovery)
}{
	{"purged", "purged", (*recovery).purge},
	{"reset, the place beyond", "invalid", (*recovery).reset},
	{"reset, the place inside", "invalid", func(s *recovery) {
		saved := s.Saved()
		s.reset()
		for s.end().Pos < saved.Pos+1000 {
			s.Exec(s.DB, "INSERT INTO "+s.Database+".other (note) VALUES (REPEAT('x', 700))")
		}
	}},
}

// TestBinlogIsCutOff: it is noticed and told once, and what was not read is brought by the table although the sweeper looks
// for nothing by itself.
func TestBinlogIsCutOff(t *testing.T) {
	t.Parallel()
	for name, start := range histories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRecovery(t, harness.Cast{SQL: start(t), Silent: true})
			s.Exec(s.DB, "CREATE TABLE "+s.Database+".other (id INT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(4000))")
			for i, row := range broken {
				prefix := fmt.Sprintf("row%d", i)
				s.settle(prefix+"-sent", 20)
				before := s.Log.Distinct()
				s.Post(s.DB, harness.Numbered(prefix+"-unread", 10)...)
				row.cut(s)
				s.Post(s.DB, harness.Numbered(prefix+"-late", 5)...)
				r := s.Start()
				found := s.recovered(r, row.kind)
				assert.True(t, found.Skipped, row.name)
				assert.EqualValues(t, 15, found.LeftToSweeper, "%s: %s", row.name, found)
				if row.kind == "invalid" {
					r.WaitLog(patience, "binlog was reset")
				}
				assert.NotContains(t, r.Log(), "max_allowed_packet", "what a server says to a place that it does not have")
				s.Seen(before+15, patience)
				s.CaughtUp(patience)
				s.stop(r)
				s.Sampler.Forget()
			}
			v := s.Exact(patience, oracle.Options{})
			assert.Equal(t, 15*len(broken), v.Swept)
		})
	}
}

// TestBinlogIsResetWhileItRuns: MySQL takes the statement with somebody reading. The stream ends, the next one begins anew.
func TestBinlogIsResetWhileItRuns(t *testing.T) {
	t.Parallel()
	for name, start := range histories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRecovery(t, harness.Cast{SQL: start(t), Silent: true})
			r := s.Start()
			s.Post(s.DB, harness.Numbered("sent", 20)...)
			s.Seen(20, patience)
			s.CaughtUp(patience)
			r.Pause()
			s.Post(s.DB, harness.Numbered("unread", 10)...)
			s.reset()
			s.Post(s.DB, harness.Numbered("late", 5)...)
			r.Resume()
			s.Seen(35, patience)
			s.recovered(r, "invalid")
			s.Post(s.DB, harness.Numbered("new", 5)...)
			s.Seen(40, patience)
			s.CaughtUp(patience)
			s.Sampler.Forget()
			s.Exact(patience, oracle.Options{Duplicates: true})
		})
	}
}

// purge removes all binlog files but the newest. MariaDB keeps those that its last checkpoint needs for a while.
func (s *recovery) purge() {
	s.t.Helper()
	s.Exec(s.DB, "FLUSH BINARY LOGS")
	s.Exec(s.DB, "FLUSH BINARY LOGS")
	newest := s.end().File
	harness.Eventually(s.t, patience, "older files are gone", func() (bool, string) {
		s.Exec(s.DB, "PURGE BINARY LOGS TO '"+newest+"'")
		rows, err := s.DB.QueryContext(s.t.Context(), "SHOW BINARY LOGS")
		require.NoError(s.t, err)
		defer func() { _ = rows.Close() }()
		n := 0
		for rows.Next() {
			n++
		}
		require.NoError(s.t, rows.Err())
		return n == 1, fmt.Sprintf("%d files", n)
	})
}

// reset forgets the binlog and begins it again under the same names.
func (s *recovery) reset() {
	s.t.Helper()
	statement := "RESET BINARY LOGS AND GTIDS"
	if s.Cast.SQL.Flavor == rig.FlavorMariaDB {
		statement = "RESET MASTER"
	}
	s.Exec(s.DB, statement)
}
