//go:build !unit

package e2e

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// meetings is how many kills must meet an archive that has moved rows and has more to move.
const meetings = 6

// TestArchiveKilled: services write, a relay sends, rows are reported consumed and archived, and the archive command is killed by SIGKILL at
// random moments, over and over. Each committed row is in exactly one of the two tables in the end, as it was written, and
// each went out exactly once.
func TestArchiveKilled(t *testing.T) {
	for _, server := range []struct {
		name  string
		start func(testing.TB, ...rig.Option) *rig.Server
	}{{"MySQL", rig.MySQL}, {"MariaDB", rig.MariaDB}} {
		t.Run(server.name, func(t *testing.T) {
			s := newScene(t, cast{sql: server.start(t)})
			database, _, _ := strings.Cut(s.tables[0], ".")
			// The pattern matches the histories too.
			s.settings = s.settings.With("archive.enabled", true, "archive.after", "1m", "archive.interval", "24h", "archive.batch", 20,
				"source.tables", []string{database + `./local_message_\w+/`})
			s.start()
			_, err := s.db.ExecContext(t.Context(), "CREATE TABLE "+database+".copy LIKE "+s.tables[0])
			require.NoError(t, err)
			history := s.tables[0] + "_history"
			s.makeHistory(history)
			finish := s.writing(func(cfg *workload.Config) { cfg.Rate, cfg.MaxBytes, cfg.Savepoints = 800, 600, 0 })
			kills, met := 0, 0
			for deadline := time.Now().Add(40 * time.Second); met < meetings && time.Now().Before(deadline); kills++ {
				s.sent(400)
				s.report(database)
				if s.killArchive(history, time.Duration(rand.IntN(150))*time.Millisecond) {
					met++
				}
			}
			// The writers may deadlock among themselves now and then, but not more often than without the archive.
			assert.LessOrEqual(t, finish().Errors, 3, "writers that the archive was in the way of")
			assert.Equal(t, meetings, met, "of %d kills met an archive that had moved rows and had more to move", kills)
			s.until(20*time.Second, func() bool {
				open, err := workload.Open(t.Context(), s.db, s.tables...)
				return err == nil && open == 0
			})
			s.report(database)
			outcome := harness.Command(t, s.settings.With("console.listen", harness.FreeAddr(t), "archive.batch", 500), "archive")
			require.Zero(t, outcome.Code, outcome.Stderr)
			t.Logf("%d kills, %d of them amid the work; the last pass: %s", kills, met, outcome.Stdout)
			assert.Zero(t, s.number("SELECT COUNT(*) FROM "+s.tables[0]))
			assert.Zero(t, s.number("SELECT COUNT(*)-COUNT(DISTINCT msg_id) FROM "+history), "a row that is there twice")
			const same = "a.msg_id=b.msg_id AND a.topic=b.topic AND a.msg_content=b.msg_content AND a.create_time=b.create_time AND a.msg_key<=>b.msg_key AND a.headers<=>b.headers"
			assert.Equal(t, s.number("SELECT COUNT(*) FROM "+database+".copy"),
				s.number("SELECT COUNT(*) FROM "+history+" a JOIN "+database+".copy b ON a.id=b.id AND "+same), "contents")
			s.archivedExactly(history)
		})
	}
}

// makeHistory lets the archive make its table as an administrator would: the relay's user may not.
func (s *scene) makeHistory(history string) {
	s.t.Helper()
	outcome := harness.Command(s.t, s.settings, "init", "--print-sql")
	require.Zero(s.t, outcome.Code, outcome.Stderr)
	_, statement, ok := strings.Cut(outcome.Stdout, "CREATE TABLE IF NOT EXISTS")
	require.True(s.t, ok, "%s", outcome.Stdout)
	statement, _, _ = strings.Cut(statement, ";")
	_, err := s.db.ExecContext(s.t.Context(), "CREATE TABLE IF NOT EXISTS"+statement)
	require.NoError(s.t, err)
	require.Zero(s.t, s.number("SELECT COUNT(*) FROM "+history))
}

// report sets what was sent to consumed, long ago, and keeps a copy of it.
func (s *scene) report(database string) {
	s.t.Helper()
	var last sql.NullInt64
	require.NoError(s.t, s.db.QueryRowContext(s.t.Context(), "SELECT MAX(id) FROM "+s.tables[0]+" WHERE status=1").Scan(&last))
	// So that it locks no gap: a writer that is refused was in the archive's way.
	tx, err := s.db.BeginTx(s.t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	require.NoError(s.t, err)
	for _, statement := range []string{
		"UPDATE " + s.tables[0] + " SET status=3, create_time=NOW()-INTERVAL 3 HOUR, update_time=NOW()-INTERVAL 2 HOUR WHERE status=1 AND id<=?",
		"INSERT IGNORE INTO " + database + ".copy SELECT * FROM " + s.tables[0] + " WHERE status=3 AND id<=?",
	} {
		_, err := tx.ExecContext(s.t.Context(), statement, last.Int64)
		require.NoError(s.t, err)
	}
	require.NoError(s.t, tx.Commit())
}

// sent waits until so many rows are sent and not reported.
func (s *scene) sent(n int) {
	s.t.Helper()
	harness.Eventually(s.t, 30*time.Second, "rows sent", func() (bool, string) {
		now := s.number("SELECT COUNT(*) FROM " + s.tables[0] + " WHERE status=1")
		return now >= n, fmt.Sprint(now)
	})
}

// killArchive runs the archive command and kills it a while after it has moved its first rows. It tells whether the kill
// met it amid its work: it had moved rows, and left some.
func (s *scene) killArchive(history string, after time.Duration) bool {
	s.t.Helper()
	before := s.number("SELECT COUNT(*) FROM " + history)
	cmd := exec.CommandContext(s.t.Context(), harness.Binary(s.t), "archive", "--config", s.settings.Write(s.t))
	require.NoError(s.t, cmd.Start())
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // killed, most often
	}()
	s.until(5*time.Second, func() bool {
		select {
		case <-exited:
			return true
		default:
			return s.number("SELECT COUNT(*) FROM "+history) > before
		}
	})
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	<-exited
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && s.number("SELECT COUNT(*) FROM "+history) > before &&
		s.number("SELECT COUNT(*) FROM "+s.tables[0]+" WHERE status=3") > 0
}

func (s *scene) number(query string) int {
	s.t.Helper()
	var n int
	require.NoError(s.t, s.db.QueryRowContext(s.t.Context(), query).Scan(&n), query)
	return n
}

// archivedExactly judges with the archived rows in their table's place.
func (s *scene) archivedExactly(history string) {
	s.t.Helper()
	rows, err := workload.Rows(s.t.Context(), s.db, history)
	require.NoError(s.t, err)
	for i := range rows {
		rows[i].Table = s.tables[0]
	}
	s.until(10*time.Second, func() bool { return s.log.Distinct() >= len(rows) })
	last, since := s.log.Len(), time.Now()
	s.until(10*time.Second, func() bool {
		if n := s.log.Len(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
	samples, fences := s.sampler.Evidence()
	v := oracle.Judge(s.ledger, oracle.Evidence{Records: s.log.Records(), Rows: rows, Samples: samples, Fences: fences}, oracle.Options{Source: s.source})
	s.t.Log(fmt.Sprint(v))
	require.NoError(s.t, v.Err())
}
