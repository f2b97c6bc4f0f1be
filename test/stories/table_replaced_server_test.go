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
	"example.com/outbox-relay/test/rig"
)

// replacements are the ways in which a table's rows go and its ids begin anew.
var replacements = []struct {
	name    string
	modes   []string
	replace func(s *recovery)
}{
	{"truncated", []string{"A", "B"}, func(s *recovery) { s.Exec(s.DB, "TRUNCATE TABLE "+s.Tables[0]) }},
	{"dropped and recreated", []string{"A"}, func(s *recovery) {
		s.Exec(s.DB, "CREATE TABLE "+s.Database+".shape LIKE "+s.Tables[0])
		s.Exec(s.DB, "DROP TABLE "+s.Tables[0])
		s.Exec(s.DB, "RENAME TABLE "+s.Database+".shape TO "+s.Tables[0])
	}},
}

// TestIDsAreUsedAgain: rows that were committed, and not read yet, go with their table, and new ones come under their ids.
// The new ones are sent, and none is marked that was not: not those of the old ids either.
func TestIDsAreUsedAgain(t *testing.T) {
	t.Parallel()
	for name, start := range both {
		for _, row := range replacements {
			for _, mode := range row.modes {
				t.Run(name+"/"+row.name+"/"+mode, func(t *testing.T) {
					t.Parallel()
					s := newRecovery(t, harness.Cast{SQL: start(t), Silent: mode == "A"})
					r := s.Start()
					s.CaughtUp(patience)
					r.Pause() // what is committed now is read after the table was replaced
					s.Post(s.DB, harness.Numbered("old", 8)...)
					row.replace(s)
					s.Post(s.DB, harness.Numbered("new", 5)...)
					assert.Equal(t, 1, s.Number("SELECT MIN(id) FROM "+s.Tables[0]), "the ids are used again")
					r.Resume()
					harness.Eventually(t, patience, "the new rows", func() (bool, string) {
						return s.Log.Seen("new-0004") > 0, fmt.Sprint(s.Log.IDs())
					})
					s.stop(r)
					s.Post(s.DB, harness.Numbered("down", 5)...)
					row.replace(s)
					s.Post(s.DB, harness.Numbered("after", 3)...)
					r = s.Start()
					s.Post(s.DB, harness.Numbered("live", 3)...)
					s.onlyGone(s.Judge(patience, oracle.Options{}), "old", "new", "down")
					s.CaughtUp(patience)
					s.stop(r)
				})
			}
		}
	}
}

// onlyGone fails the test for every fault but that rows are gone which somebody has removed from the table: they are
// missing there, and they may have been too late to be sent.
func (s *recovery) onlyGone(v *oracle.Verdict, prefixes ...string) {
	s.t.Helper()
	for _, f := range v.Faults {
		if f.Kind != oracle.Missing && f.Kind != oracle.Lost {
			s.t.Error(f)
			continue
		}
		for _, example := range f.Examples {
			gone := false
			for _, prefix := range prefixes {
				gone = gone || strings.HasPrefix(example, prefix+"-")
			}
			assert.True(s.t, gone, "%s: %s", f.Kind, example)
		}
	}
}

// TestTableIsDropped: its rows hold the checkpoint, and readiness says why, until it is made again. Its new rows have the
// ids of the old ones, which are marked by their msg_ids only, that is not at all. MariaDB does not name the columns, so there
// what was not read before has gone with the table.
func TestTableIsDropped(t *testing.T) {
	t.Parallel()
	for name, start := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRecovery(t, harness.Cast{SQL: start(t), Silent: name == "MySQL"})
			r := s.Start()
			s.CaughtUp(patience)
			r.Pause()
			s.Post(s.DB, harness.Numbered("old", 5)...)
			s.Exec(s.DB, "CREATE TABLE "+s.Database+".shape LIKE "+s.Tables[0])
			s.Exec(s.DB, "DROP TABLE "+s.Tables[0])
			r.Resume()
			kind, readable := "gone", 0
			if name == "MySQL" {
				kind, readable = "table-gone", 5
				s.Seen(readable, patience)
				unready(t, r, patience, "rows wait")
			} else {
				s.recovered(r, kind)
			}
			s.Exec(s.DB, "RENAME TABLE "+s.Database+".shape TO "+s.Tables[0])
			found := s.recovered(r, kind)
			assert.Equal(t, name == "MySQL", found.Held > 0)
			s.Post(s.DB, harness.Numbered("new", 5)...)
			s.onlyGone(s.Judge(patience, oracle.Options{}), "old")
			s.CaughtUp(patience)
			require.Equal(t, readable+5, s.Log.Distinct())
		})
	}
}

// TestTableIsRenamedAwayAndBack while the relay runs: what is acked waits for it, and nothing is sent twice. MariaDB does not
// name the columns, so there what can't be read any more is the sweeper's.
func TestTableIsRenamedAwayAndBack(t *testing.T) {
	t.Parallel()
	for name, start := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRecovery(t, harness.Cast{SQL: start(t), Silent: name == "MySQL"})
			r := s.Start()
			s.CaughtUp(patience)
			r.Pause()
			away := harness.Numbered("away", 5)
			for i := range away {
				away[i].Unlogged = name == "MariaDB" // as good as: the stream can't bring it
			}
			s.Post(s.DB, away...)
			s.Exec(s.DB, "RENAME TABLE "+s.Tables[0]+" TO "+s.Database+".hold")
			r.Resume()
			kind := "gone"
			if name == "MySQL" {
				kind = "table-gone"
				unready(t, r, patience, "rows wait")
			} else {
				s.recovered(r, kind)
			}
			s.Exec(s.DB, "RENAME TABLE "+s.Database+".hold TO "+s.Tables[0])
			s.Post(s.DB, harness.Numbered("back", 5)...)
			s.recovered(r, kind)
			s.Exact(patience, oracle.Options{})
			s.CaughtUp(patience)
		})
	}
}

// TestPtOscCutOver changes the table as pt-online-schema-change does, under load: triggers copy every change into a shadow
// table of another shape, chunks copy the rest, one RENAME swaps the two, the old one is dropped.
func TestPtOscCutOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]harness.Cast{
		"MySQL/A":   {SQL: rig.MySQL(t), Silent: true},
		"MySQL/B":   {SQL: rig.MySQL(t)},
		"MariaDB/B": {SQL: rig.MariaDB(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRecovery(t, c)
			s.Start()
			finish := s.Writing(func(cfg *workload.Config) { cfg.Rate, cfg.Orders = 200, "" })
			s.Committed(100)
			s.ptOsc()
			s.Committed(100)
			finish()
			s.Exact(patience, oracle.Options{})
			s.CaughtUp(patience)
		})
	}
}

// ptOsc runs the statements of pt-online-schema-change.
func (s *recovery) ptOsc() {
	s.t.Helper()
	const columns = "id, msg_id, topic, msg_content, status, retry_count, next_retry_time, create_time, update_time, msg_key, headers, last_error, trace_parent"
	database, table, _ := strings.Cut(s.Tables[0], ".")
	shadow, old := database+"._"+table+"_new", database+"._"+table+"_old"
	var values []string
	for column := range strings.SplitSeq(columns, ", ") {
		values = append(values, "NEW."+column)
	}
	replace := "REPLACE INTO " + shadow + " (" + columns + ") VALUES (" + strings.Join(values, ", ") + ")"
	s.Exec(s.DB, "CREATE TABLE "+shadow+" LIKE "+s.Tables[0])
	s.Exec(s.DB, "ALTER TABLE "+shadow+" ADD COLUMN c VARCHAR(255) FIRST")
	for action, body := range map[string]string{
		"INSERT": replace,
		"UPDATE": "BEGIN DELETE IGNORE FROM " + shadow + " WHERE OLD.id <> NEW.id AND id = OLD.id; " + replace + "; END",
		"DELETE": "DELETE IGNORE FROM " + shadow + " WHERE id = OLD.id",
	} {
		s.locking("CREATE TRIGGER " + database + ".pt_osc_" + strings.ToLower(action) + " AFTER " + action + " ON " + s.Tables[0] + " FOR EACH ROW " + body)
	}
	chunk := "INSERT LOW_PRIORITY IGNORE INTO " + shadow + " (" + columns + ") SELECT " + columns + " FROM " + s.Tables[0]
	s.locking(chunk + " WHERE id <= 100 LOCK IN SHARE MODE")
	s.locking(chunk + " WHERE id > 100 LOCK IN SHARE MODE")
	s.Exec(s.DB, "RENAME TABLE "+s.Tables[0]+" TO "+old+", "+shadow+" TO "+s.Tables[0])
	for _, action := range []string{"insert", "update", "delete"} {
		s.Exec(s.DB, "DROP TRIGGER IF EXISTS "+database+".pt_osc_"+action)
	}
	s.Exec(s.DB, "DROP TABLE IF EXISTS "+old)
}

// locking repeats a statement that the writers' locks may make fail, as the tool does.
func (s *recovery) locking(statement string) {
	s.t.Helper()
	harness.Eventually(s.t, patience, "done: "+statement[:40], func() (bool, string) {
		_, err := s.DB.ExecContext(s.t.Context(), statement)
		return err == nil, fmt.Sprint(err)
	})
}

// TestMetadataCannotBeReadAfterADDL: the right to look at the table goes right after a column was added. The binlog does not
// name the columns, so the stream waits, says why, and skips nothing.
func TestMetadataCannotBeReadAfterADDL(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) *rig.Server{
		"MySQL": func(t *testing.T) *rig.Server {
			t.Helper()
			return rig.MySQL(t, rig.Args("--binlog-row-metadata=MINIMAL"))
		},
		"MariaDB": func(t *testing.T) *rig.Server { t.Helper(); return rig.MariaDB(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRecovery(t, harness.Cast{SQL: start(t), Silent: true})
			r := s.Start()
			s.Post(s.DB, harness.Numbered("before", 5)...)
			s.Seen(5, patience)
			s.CaughtUp(patience)
			rights := " SELECT, INSERT, UPDATE, DELETE ON " + s.Database + ".* "
			s.Exec(s.DB, "ALTER TABLE "+s.Tables[0]+" ADD COLUMN c INT FIRST")
			s.Exec(s.DB, "REVOKE"+rights+"FROM '"+s.User+"'@'%'")
			place := s.Saved()
			s.Post(s.DB, harness.Numbered("meanwhile", 50)...)
			unready(t, r, patience, "the columns of")
			r.WaitLog(patience, "denied", "privilege", "GRANT")
			assert.Equal(t, 5, s.Log.Distinct())
			saved := s.Saved()
			assert.Equal(t, place.File, saved.File)
			s.Exec(s.DB, "GRANT"+rights+"TO '"+s.User+"'@'%'")
			v := s.Exact(patience, oracle.Options{})
			s.ByStream(v)
			found := s.recovered(r, "metadata")
			assert.Greater(t, found.Ended.Sub(found.Began), time.Second)
			s.CaughtUp(patience)
		})
	}
}
