//go:build !unit

package stories

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// changes are what can be done to the columns. Each leaves a table that the relay can serve.
var changes = []struct{ name, alter string }{
	{"added in front", "ADD COLUMN tenant VARCHAR(64) NOT NULL DEFAULT 'x' FIRST"},
	{"added invisible", "ADD COLUMN shard INT DEFAULT 0 INVISIBLE AFTER id"},
	{"dropped", "DROP COLUMN tenant"},
	{"reordered, of one type", "MODIFY topic VARCHAR(64) NOT NULL FIRST"},
	{"reordered, of another type", "MODIFY msg_content TEXT NOT NULL FIRST"},
	{"made invisible", "MODIFY trace_parent VARCHAR(128) INVISIBLE"},
	{"optional one dropped", "DROP COLUMN trace_parent"},
}

// servers name their columns in the binlog or do not.
var servers = []struct {
	name  string
	start func(t *testing.T) *rig.Server
	named bool
	modes []string
}{
	{"MySQL", func(t *testing.T) *rig.Server { t.Helper(); return rig.MySQL(t) }, true, []string{"A"}},
	{"MySQLMinimal", func(t *testing.T) *rig.Server {
		t.Helper()
		return rig.MySQL(t, rig.Args("--binlog-row-metadata=MINIMAL"))
	}, false, []string{"A"}},
	{"MariaDB", func(t *testing.T) *rig.Server { t.Helper(); return rig.MariaDB(t) }, false, []string{"A", "B"}},
}

// TestColumnsChange while the relay is down and while it runs. Mode A: all comes by the stream where the binlog names its
// columns; elsewhere the rows that were not read before a change are recorded as the sweeper's and sent before what came
// after. Nothing is sent in another shape.
func TestColumnsChange(t *testing.T) {
	t.Parallel()
	for _, server := range servers {
		for _, mode := range server.modes {
			t.Run(server.name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				s := newRecovery(t, harness.Cast{SQL: server.start(t), Silent: mode == "A"})
				s.settle("first", 3)
				left := int64(0)
				for i, change := range changes {
					s.Post(s.DB, harness.Numbered(fmt.Sprintf("old%d", i), 2)...)
					s.Exec(s.DB, "ALTER TABLE "+s.Tables[0]+" "+change.alter)
					s.Post(s.DB, harness.Numbered(fmt.Sprintf("new%d", i), 2)...)
					r := s.Start()
					last := fmt.Sprintf("new%d-0001", i)
					harness.Eventually(t, patience, change.name+": "+last, func() (bool, string) { return s.Log.Seen(last) > 0, "" })
					s.CaughtUp(patience)
					for _, one := range recoveries(t, r) {
						if one.Kind == "columns" {
							left += one.LeftToSweeper
							s.recovered(r, "columns")
						}
					}
					s.stop(r)
				}
				s.markedAreSent()
				if server.named {
					assert.Zero(t, left, "the binlog names its columns")
				} else {
					assert.Positive(t, left)
				}
				s.Sweeping()
				s.Start()
				v := s.Exact(patience, oracle.Options{})
				if server.named && mode == "A" {
					s.ByStream(v)
				}
			})
		}
	}
}

// markedAreSent fails the test when a row is marked as sent that no consumer has seen.
func (s *recovery) markedAreSent() {
	s.t.Helper()
	rows, err := s.DB.QueryContext(s.t.Context(), "SELECT msg_id FROM "+s.Tables[0]+" WHERE status = 1")
	require.NoError(s.t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		require.NoError(s.t, rows.Scan(&id))
		assert.Positive(s.t, s.Log.Seen(id), "%s is marked and was not sent", id)
	}
	require.NoError(s.t, rows.Err())
}

// TestColumnsChangeWhileItRuns: nothing has to be left to the sweeper, whatever the binlog names.
func TestColumnsChangeWhileItRuns(t *testing.T) {
	t.Parallel()
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			s := newRecovery(t, harness.Cast{SQL: server.start(t), Silent: true})
			s.Start()
			s.CaughtUp(patience)
			for i, change := range changes {
				s.Exec(s.DB, "ALTER TABLE "+s.Tables[0]+" "+change.alter)
				s.Post(s.DB, harness.Numbered(fmt.Sprintf("live%d", i), 3)...)
				s.Seen(3*i+3, patience)
			}
			v := s.Exact(patience, oracle.Options{})
			s.ByStream(v)
			s.CaughtUp(patience)
		})
	}
}

// TestNeededColumnIsRenamed, and back, while the relay is down and while it runs. Without it nothing is sent or marked, the
// reason is told, and it goes on by itself.
func TestNeededColumnIsRenamed(t *testing.T) {
	t.Parallel()
	for _, server := range servers {
		for _, down := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/down=%t", server.name, down), func(t *testing.T) {
				t.Parallel()
				s := newRecovery(t, harness.Cast{SQL: server.start(t)})
				s.settle("sent", 3)
				r := s.Start()
				if down {
					s.stop(r)
				}
				s.Exec(s.DB, "ALTER TABLE "+s.Tables[0]+" RENAME COLUMN topic TO topic_name")
				s.renamed("astray", 3)
				if down {
					r = s.Launch()
					<-r.Exited()
					assert.NotZero(t, r.ExitCode())
				}
				r.WaitLog(patience, "has no column topic")
				assert.Equal(t, 3, s.Log.Distinct())
				assert.Equal(t, 3, s.Number("SELECT COUNT(*) FROM "+s.Tables[0]+" WHERE status = 0"))
				s.Exec(s.DB, "ALTER TABLE "+s.Tables[0]+" RENAME COLUMN topic_name TO topic")
				if down {
					r = s.Start()
				}
				s.Leads(r)
				s.Post(s.DB, harness.Numbered("back", 3)...)
				s.Exact(patience, oracle.Options{})
				s.CaughtUp(patience)
			})
		}
	}
}

// renamed posts letters while the column of their topic has another name. They have no order to keep: the stream can't
// bring them.
func (s *recovery) renamed(prefix string, n int) {
	s.t.Helper()
	letters := harness.Numbered(prefix, n)
	for i := range letters {
		sent := time.Now()
		letters[i].Key, letters[i].Unlogged = "", true
		s.Exec(s.DB, "INSERT INTO "+s.Tables[0]+` (msg_id, topic_name, msg_content, status, create_time, update_time)
			VALUES (?, ?, ?, 0, NOW(), NOW())`, letters[i].ID, s.Topics[0], fmt.Sprintf(`{"id":%q}`, letters[i].ID))
		s.Enter(oracle.Committed, sent, letters[i])
	}
}
