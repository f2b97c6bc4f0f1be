//go:build !unit

package stories

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
)

// archived is a scene whose rows are reported and archived.
type archived struct {
	*harness.Scene
	t *testing.T
}

// meetings is how many kills must meet an archive that has moved rows and has more to move.
const meetings = 6

// TestArchiveKilled: services write, a relay sends, rows are reported consumed and archived, and the archive command is killed by SIGKILL at
// random moments, over and over. Each committed row is in exactly one of the two tables in the end, as it was written, and
// each went out exactly once.
func TestArchiveKilled(t *testing.T) {
	for name, start := range both {
		t.Run(name, func(t *testing.T) {
			s := &archived{Scene: harness.NewScene(t, harness.Cast{SQL: start(t), Patient: true}), t: t}
			database, _, _ := strings.Cut(s.Tables[0], ".")
			// The pattern matches the histories too.
			s.Set("archive.enabled", true, "archive.after", "1m", "archive.interval", "24h", "archive.batch", 20,
				"source.tables", []string{database + `./local_message_\w+/`})
			s.Start()
			_, err := s.DB.ExecContext(t.Context(), "CREATE TABLE "+database+".copy LIKE "+s.Tables[0])
			require.NoError(t, err)
			history := s.Tables[0] + "_history"
			s.makeHistory(history)
			finish := s.Writing(func(cfg *workload.Config) { cfg.Rate, cfg.MaxBytes, cfg.Savepoints = 800, 600, 0 })
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
			harness.Patiently(20*time.Second, func() bool {
				open, err := workload.Open(t.Context(), s.DB, s.Tables...)
				return err == nil && open == 0
			})
			s.report(database)
			outcome := harness.Command(t, s.Settings.With("console.listen", harness.FreeAddr(t), "archive.batch", 500), "archive")
			require.Zero(t, outcome.Code, outcome.Stderr)
			t.Logf("%d kills, %d of them amid the work; the last pass: %s", kills, met, outcome.Stdout)
			assert.Zero(t, s.Number("SELECT COUNT(*) FROM "+s.Tables[0]))
			assert.Zero(t, s.Number("SELECT COUNT(*)-COUNT(DISTINCT msg_id) FROM "+history), "a row that is there twice")
			const same = "a.msg_id=b.msg_id AND a.topic=b.topic AND a.msg_content=b.msg_content AND a.create_time=b.create_time AND a.msg_key<=>b.msg_key AND a.headers<=>b.headers"
			assert.Equal(t, s.Number("SELECT COUNT(*) FROM "+database+".copy"),
				s.Number("SELECT COUNT(*) FROM "+history+" a JOIN "+database+".copy b ON a.id=b.id AND "+same), "contents")
			s.archivedExactly(history)
		})
	}
}

// makeHistory lets the archive make its table as an administrator would: the relay's user may not.
func (s *archived) makeHistory(history string) {
	s.t.Helper()
	outcome := harness.Command(s.t, s.Settings, "init", "--print-sql")
	require.Zero(s.t, outcome.Code, outcome.Stderr)
	_, statement, ok := strings.Cut(outcome.Stdout, "CREATE TABLE IF NOT EXISTS")
	require.True(s.t, ok, "%s", outcome.Stdout)
	statement, _, _ = strings.Cut(statement, ";")
	_, err := s.DB.ExecContext(s.t.Context(), "CREATE TABLE IF NOT EXISTS"+statement)
	require.NoError(s.t, err)
	require.Zero(s.t, s.Number("SELECT COUNT(*) FROM "+history))
}

// report sets what was sent to consumed, long ago, and keeps a copy of it.
func (s *archived) report(database string) {
	s.t.Helper()
	var last sql.NullInt64
	require.NoError(s.t, s.DB.QueryRowContext(s.t.Context(), "SELECT MAX(id) FROM "+s.Tables[0]+" WHERE status=1").Scan(&last))
	// So that it locks no gap: a writer that is refused was in the archive's way.
	tx, err := s.DB.BeginTx(s.t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	require.NoError(s.t, err)
	for _, statement := range []string{
		"UPDATE " + s.Tables[0] + " SET status=3, create_time=NOW()-INTERVAL 3 HOUR, update_time=NOW()-INTERVAL 2 HOUR WHERE status=1 AND id<=?",
		"INSERT IGNORE INTO " + database + ".copy SELECT * FROM " + s.Tables[0] + " WHERE status=3 AND id<=?",
	} {
		_, err := tx.ExecContext(s.t.Context(), statement, last.Int64)
		require.NoError(s.t, err)
	}
	require.NoError(s.t, tx.Commit())
}

// sent waits until so many rows are sent and not reported.
func (s *archived) sent(n int) {
	s.t.Helper()
	harness.Eventually(s.t, 30*time.Second, "rows sent", func() (bool, string) {
		now := s.Number("SELECT COUNT(*) FROM " + s.Tables[0] + " WHERE status=1")
		return now >= n, fmt.Sprint(now)
	})
}

// killArchive runs the archive command and kills it a while after it has moved its first rows. It tells whether the kill
// met it amid its work: it had moved rows, and left some.
func (s *archived) killArchive(history string, after time.Duration) bool {
	s.t.Helper()
	before := s.Number("SELECT COUNT(*) FROM " + history)
	cmd := exec.CommandContext(s.t.Context(), harness.Binary(s.t), "archive", "--config", s.Settings.Write(s.t))
	require.NoError(s.t, cmd.Start())
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // killed, most often
	}()
	harness.Patiently(5*time.Second, func() bool {
		select {
		case <-exited:
			return true
		default:
			return s.Number("SELECT COUNT(*) FROM "+history) > before
		}
	})
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	<-exited
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && s.Number("SELECT COUNT(*) FROM "+history) > before &&
		s.Number("SELECT COUNT(*) FROM "+s.Tables[0]+" WHERE status=3") > 0
}

// archivedExactly judges with the archived rows in their table's place.
func (s *archived) archivedExactly(history string) {
	s.t.Helper()
	rows, err := workload.Rows(s.t.Context(), s.DB, history)
	require.NoError(s.t, err)
	for i := range rows {
		rows[i].Table = s.Tables[0]
	}
	v := s.JudgeRows(rows, oracle.Options{})
	require.NoError(s.t, v.Err())
}
