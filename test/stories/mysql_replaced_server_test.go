//go:build !unit

package stories

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// restores are the ways in which a server can come back from a backup: how much is written before the relay comes, and
// whether the server keeps its name.
var restores = []struct {
	name    string
	rows    int
	renamed bool // MySQL only: without auto.cnf the server gives itself another uuid
	kind    string
}{
	{"less than was lost", 5, false, "invalid"},
	{"more than was lost", 60, false, "invalid"},
	{"under another name", 60, true, "other-server"},
}

// TestServerIsRestoredFromABackup, from before rows that were sent: it has the same file names, and gives out the same ids
// and GTIDs again, for other rows. These are sent, each once, and nothing else is marked.
func TestServerIsRestoredFromABackup(t *testing.T) {
	t.Parallel()
	for name, start := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, rig.Own())
			s := newRecovery(t, harness.Cast{SQL: server, Silent: true})
			s.settle("kept", 20)
			server.Stop(t)
			backup := filepath.Join(t.TempDir(), "backup")
			require.NoError(t, os.CopyFS(backup, os.DirFS(server.DataDir)))
			server.Start(t)
			var lost []string
			for i, row := range restores {
				if row.renamed && name == "MariaDB" {
					continue // it has no name but its number
				}
				prefix := fmt.Sprintf("row%d", i)
				s.settle(prefix+"-lost", 30)
				lost = append(lost, prefix+"-lost")
				server.Stop(t)
				require.NoError(t, os.RemoveAll(server.DataDir))
				require.NoError(t, os.CopyFS(server.DataDir, os.DirFS(backup)))
				if row.renamed {
					require.NoError(t, os.Remove(filepath.Join(server.DataDir, "auto.cnf")))
				}
				server.Start(t)
				before := s.Log.Distinct()
				letters := harness.Numbered(prefix+"-after", row.rows)
				for n := range letters {
					letters[n].Content = fmt.Sprintf(`{"of":"another length than before","n":%d}`, n)
				}
				s.Post(s.DB, letters...)
				lost = append(lost, prefix+"-after") // by the next restore
				r := s.Start()
				found := s.recovered(r, row.kind)
				assert.True(t, found.Skipped)
				assert.EqualValues(t, row.rows, found.LeftToSweeper, "%s: %s", row.name, found)
				s.Seen(before+row.rows, patience)
				s.CaughtUp(patience)
				s.stop(r)
				s.Sampler.Forget()
			}
			s.Start()
			s.onlyGone(s.Judge(patience, oracle.Options{}), lost...)
		})
	}
}

// pairing is a primary and how its replicas follow.
type pairing struct {
	name  string
	start func(t *testing.T) *rig.Server
	args  []rig.Option
	gtid  bool
}

// pairs are how a replica may follow. The files of the replicas have other names than the primary's.
var pairs = []pairing{
	{"MySQL", func(t *testing.T) *rig.Server { t.Helper(); return rig.MySQL(t, rig.Own()) }, nil, true},
	{"MySQLWithoutGTIDs", func(t *testing.T) *rig.Server { t.Helper(); return rig.MySQL(t, withoutGTIDs) }, []rig.Option{withoutGTIDs}, false},
	{"MariaDB", func(t *testing.T) *rig.Server { t.Helper(); return rig.MariaDB(t, rig.Own()) }, nil, true},
}

// TestFailover to a replica that has more than the relay has read, then to one that has less than it had sent. By GTID the
// first is no loss of place. The second has given the ids of the rows that it never had to others.
func TestFailover(t *testing.T) {
	t.Parallel()
	for _, pair := range pairs {
		t.Run(pair.name, func(t *testing.T) {
			primary := pair.start(t)
			ahead, behind := pair.follow(t, primary, "aaa-bin"), pair.follow(t, primary, "zzz-bin")
			s := newRecovery(t, harness.Cast{SQL: primary, Silent: true})
			s.settle("first", 10)
			catchUp(t, s, behind, 10)
			s.follow(behind, false)
			s.settle("missing", 10)
			s.Post(s.DB, harness.Numbered("unread", 10)...)
			catchUp(t, s, ahead, 30)
			primary.Kill(t)

			s.promote(ahead)
			s.Post(s.DB, harness.Numbered("ahead", 5)...)
			r := s.Start()
			kind := "other-server"
			if pair.gtid {
				kind = "moved"
			}
			found := s.recovered(r, kind)
			assert.NotEqual(t, pair.gtid, found.Skipped)
			assert.EqualValues(t, 15, found.LeftToSweeper+found.ReadAgain-found.AlreadySent, found)
			s.Seen(35, patience)
			s.CaughtUp(patience)
			assert.Contains(t, s.Saved().File, "aaa-bin")
			s.stop(r)
			v := s.Exact(patience, oracle.Options{})
			if pair.gtid {
				s.ByStream(v)
			}

			s.promote(behind)
			s.Sampler.Forget()
			s.Post(s.DB, harness.Numbered("behind", 12)...)
			r = s.Start()
			found = s.recovered(r, "other-server")
			assert.True(t, found.Skipped)
			assert.GreaterOrEqual(t, found.LeftToSweeper, int64(12))
			s.Seen(47, patience)
			s.CaughtUp(patience)
			s.onlyGone(s.Judge(patience, oracle.Options{Duplicates: true}), "missing", "unread", "ahead")
		})
	}
}

// TestReplicaAsSourceIsExchangedForOneThatLags: what the other replica applies later was sent long ago, by the one before.
// It is not sent again.
func TestReplicaAsSourceIsExchangedForOneThatLags(t *testing.T) {
	t.Parallel()
	for _, pair := range pairs {
		if !pair.gtid {
			continue
		}
		t.Run(pair.name, func(t *testing.T) {
			t.Parallel()
			primary := pair.start(t)
			first, lagging := pair.follow(t, primary, "aaa-bin"), pair.follow(t, primary, "zzz-bin")
			s := newRecovery(t, harness.Cast{SQL: primary, Replica: first, Silent: true})
			lagging.CatchUp(t, primary) // the relay's user, too
			s.follow(lagging, false)
			r := s.Start()
			s.Post(s.DB, harness.Numbered("sent", 20)...)
			s.Seen(20, patience)
			harness.WaitSettled(t, patience, s.DB, s.Tables...)
			s.SavedAt(s.Binlog, patience)
			s.stop(r)
			s.Sampler.MoveBinlog(harness.Pool(t, lagging))
			s.Set("source.replica.address", lagging.Addr)
			s.Post(s.DB, harness.Numbered("pending", 5)...)
			r = s.Start()
			harness.Eventually(t, patience, "what is pending is recorded", func() (bool, string) {
				all := recoveries(t, r)
				return len(all) > 0 && all[0].Kind == "other-server" && all[0].LeftToSweeper == 5, fmt.Sprint(all)
			})
			s.follow(lagging, true)
			found := s.recovered(r, "other-server")
			assert.GreaterOrEqual(t, found.AlreadySent, int64(20), found)
			assert.EqualValues(t, 5, found.LeftToSweeper, found)
			s.Post(s.DB, harness.Numbered("new", 5)...)
			s.Seen(30, patience)
			s.Exact(patience, oracle.Options{})
		})
	}
}

// follow starts a replica of the primary whose binlog has another name.
func (p pairing) follow(t *testing.T, primary *rig.Server, binlog string) *rig.Server {
	t.Helper()
	opts := append([]rig.Option{rig.Args("--log-bin=" + binlog)}, p.args...)
	if p.gtid {
		return primary.Replica(t, append(opts, rig.Args("--log-slave-updates=1"))...)
	}
	replica := rig.MySQL(t, append(opts, rig.Args("--log-replica-updates=ON", "--read-only=ON"))...)
	host, port, err := net.SplitHostPort(primary.Addr)
	require.NoError(t, err)
	_, err = replica.DB(t).ExecContext(t.Context(), fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%s, SOURCE_USER='%s', "+
		"SOURCE_PASSWORD='%s', SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=4, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1; START REPLICA",
		host, port, primary.User, primary.Password))
	require.NoError(t, err)
	return replica
}

// follow stops or starts a replica.
func (s *recovery) follow(replica *rig.Server, on bool) {
	s.t.Helper()
	verb := "STOP "
	if on {
		verb = "START "
	}
	s.Exec(replica.DB(s.t), verb+replicating(replica))
}

// catchUp waits until a replica has so many rows of the scene's table, marked as on the primary.
func catchUp(t *testing.T, s *recovery, replica *rig.Server, rows int) {
	t.Helper()
	db := replica.DB(t)
	count := "SELECT COUNT(*) * 1000 + COALESCE(SUM(status), 0) FROM " + s.Tables[0]
	want := s.Number(count)
	require.Equal(t, rows, want/1000)
	harness.Eventually(t, patience, "the replica catches up", func() (bool, string) {
		var got int
		err := db.QueryRowContext(t.Context(), count).Scan(&got)
		return err == nil && got == want, fmt.Sprint(got, " of ", want, err)
	})
}

// promote makes a replica the primary, for the writers and for relays that are started from now on.
func (s *recovery) promote(replica *rig.Server) {
	s.t.Helper()
	promote(s.Scene, replica)
	s.Set("source.primary.address", replica.Addr)
}
