//go:build !unit

package stories

import (
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

// TestGhostCutOver changes the table as gh-ost does, under load: a shadow table is filled in chunks and then takes the
// table's name, with another first column. Where the binlog does not name its columns (MariaDB's default) rows from before
// the cut-over that are read after it can't be mapped for certain and are the sweeper's, so there it must be on.
func TestGhostCutOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]harness.Cast{
		"MySQL/A":   {SQL: rig.MySQL(t), Silent: true},
		"MySQL/B":   {SQL: rig.MySQL(t)},
		"MariaDB/B": {SQL: rig.MariaDB(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.NewScene(t, c)
			s.Start()
			finish := s.Writing(func(cfg *workload.Config) { cfg.Rate, cfg.Orders = 300, "" })
			s.Committed(200)
			cutOver(t, s)
			s.Committed(200)
			finish()
			// The copy may take a row before its mark, which this cut-over, unlike gh-ost's, does not replay on the new table: the
			// sweeper finds it pending there.
			s.Exact(30*time.Second, oracle.Options{Duplicates: !c.Silent})
			s.CaughtUp(15 * time.Second)
		})
	}
}

// cutOver is gh-ost's: the lock is held until the rename waits, so that no writer comes between.
func cutOver(t *testing.T, s *harness.Scene) {
	t.Helper()
	const columns = "id, msg_id, topic, msg_content, status, retry_count, next_retry_time, create_time, update_time, msg_key, headers, last_error, trace_parent"
	database, table, _ := strings.Cut(s.Tables[0], ".")
	ghost, gone := database+"._"+table+"_gho", database+"._"+table+"_del"
	s.Exec(s.DB, "CREATE TABLE "+ghost+" LIKE "+s.Tables[0])
	s.Exec(s.DB, "ALTER TABLE "+ghost+" ADD COLUMN c VARCHAR(255) FIRST")
	s.Exec(s.DB, "CREATE TABLE "+database+"._"+table+"_ghc (id BIGINT PRIMARY KEY, note VARCHAR(64))")
	chunk := "INSERT IGNORE INTO " + ghost + " (" + columns + ") SELECT " + columns + " FROM " + s.Tables[0]
	s.Exec(s.DB, chunk+" ORDER BY id LIMIT 100")
	s.Exec(s.DB, chunk+" ORDER BY id LIMIT 100, 100000")
	s.Committed(100)
	locker := s.Session("LOCK TABLES " + s.Tables[0] + " READ")
	s.Exec(s.DB, "REPLACE INTO "+ghost+" ("+columns+") SELECT "+columns+" FROM "+s.Tables[0])
	renaming := s.Session()
	var id int64
	require.NoError(t, renaming.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id))
	renamed := make(chan error, 1) // size 1: the rename must be able to end
	go func() {
		_, err := renaming.ExecContext(t.Context(), "RENAME TABLE "+s.Tables[0]+" TO "+gone+", "+ghost+" TO "+s.Tables[0])
		renamed <- err
	}()
	eventually(t, 10*time.Second, "the rename waits for the lock", func() bool {
		return strings.HasPrefix(doing(t, s, id), "Waiting for table metadata lock")
	})
	s.Exec(locker, "UNLOCK TABLES")
	require.NoError(t, <-renamed)
	s.Exec(s.DB, "DROP TABLE "+gone+", "+database+"._"+table+"_ghc")
}

// doing returns the state of a session.
func doing(t *testing.T, s *harness.Scene, id int64) string {
	t.Helper()
	for _, session := range rig.Sessions(t, s.DB) {
		if int64(session.ID) == id {
			return session.State
		}
	}
	return ""
}

// TestTableRenamedAway: the rows of a table that is not there are held, aloud, and it goes on by itself once the table
// is back.
func TestTableRenamedAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(*testing.T) harness.Cast{
		"MySQL/A": func(t *testing.T) harness.Cast { return harness.Cast{SQL: rig.MySQL(t), Silent: true} },
		"MySQL/B": func(t *testing.T) harness.Cast { return harness.Cast{SQL: rig.MySQL(t)} },
		"MariaDB/B": func(t *testing.T) harness.Cast {
			return harness.Cast{SQL: rig.MariaDB(t, rig.Args("--binlog-row-metadata=FULL"))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cast := c(t)
			cast.Tables = 2
			s := harness.NewScene(t, cast)
			relay := s.Start()
			s.CaughtUp(15 * time.Second)
			code, _ := relay.Stop()
			require.Zero(t, code)
			away := harness.Numbered("away", 5)
			s.Post(s.DB, away[0])
			end, err := harness.BinlogEnd(t.Context(), s.DB, s.Cast.SQL.Flavor)
			require.NoError(t, err)
			s.Post(s.DB, away[1:]...)
			hold := s.Database + ".hold"
			s.Exec(s.DB, "RENAME TABLE "+s.Tables[0]+" TO "+hold)
			relay = s.Launch() // it leads, and soon is not ready any more
			relay.WaitLog(30*time.Second, "renamed or dropped")
			other := harness.Numbered("other", 20)
			for i := range other {
				other[i].Table, other[i].Topic, other[i].Key = s.Tables[1], s.Topics[1], "o"
			}
			s.Post(s.DB, other...)
			s.Seen(len(other), 20*time.Second)
			unready(t, relay, 45*time.Second, "")
			assert.Less(t, s.Saved().Pos, end.Pos, "the checkpoint is held")
			assert.Equal(t, 5, s.Number("SELECT COUNT(*) FROM "+hold+" WHERE status = 0 AND retry_count = 0 AND next_retry_time IS NULL"))
			s.Exec(s.DB, "RENAME TABLE "+hold+" TO "+s.Tables[0])
			s.Exact(30*time.Second, oracle.Options{})
			s.CaughtUp(15 * time.Second)
		})
	}
}
