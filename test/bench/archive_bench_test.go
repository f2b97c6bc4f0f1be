//go:build bench

package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
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

const (
	million = 1_000_000
	// calm is how long the writers are measured without the archive, before it and again after it.
	calm = 30 * time.Second
	// patience is how long the million may take beside them.
	patience = 30 * time.Minute
)

// TestArchiveMillion moves a million consumed rows to the history while services commit 2 000 rows a second, each a
// transaction of its own, into the same table, and the relay sends them. How long the services' transactions take, from BEGIN
// to COMMIT's answer, is measured without the archive before and after, and with it.
func TestArchiveMillion(t *testing.T) {
	for _, server := range []struct {
		name, log string
		start     func(testing.TB, ...rig.Option) *rig.Server
	}{{"MySQL", "--innodb-redo-log-capacity=1G", rig.MySQL}, {"MariaDB", "--innodb-log-file-size=1G", rig.MariaDB}} {
		t.Run(server.name, func(t *testing.T) {
			// Memory as a server of such a table has it: the rig's is for tables of some thousand rows.
			s := newSetting(t, server.start(t, rig.Args("--innodb-buffer-pool-size=1500M", server.log)))
			s.fillConsumed()
			s.mayMakeHistory()
			relay := s.start()
			halt := s.committing()
			s.during("warm", 10*time.Second)
			before := s.during("without, before", calm)
			archive := s.archive()
			with := s.until("with the archive", archive, patience)
			archive.end(t)
			during := s.count(s.table + "_history")
			t.Logf("archived beside the writers: %d rows in %s (%.0f/s)\n%s", during, archive.took.Round(time.Second),
				float64(during)/archive.took.Seconds(), archive.out.String()+archive.log.String())
			after := s.during("without, after", calm)
			halt()
			reference := (before.P99 + after.P99) / 2
			t.Logf("the writers' p99: %s before, %s with, %s after: %.2f times what it was", before.P99, with.P99, after.P99,
				with.P99.Seconds()/reference.Seconds())
			assert.Less(t, with.P99.Seconds()/reference.Seconds(), 1.5)
			assert.Equal(t, million, s.count(s.table+"_history"))
			assert.Zero(t, s.count(s.table+" WHERE status=3"))
			assert.Zero(t, s.count(s.table+" a JOIN "+s.table+"_history b ON a.id=b.id"))
			assert.Equal(t, million, s.count("(SELECT DISTINCT msg_id FROM "+s.table+"_history WHERE msg_content="+oldContent+") AS each_once"))
			s.verdict(relay)
		})
	}
}

// oldContent is the content of the rows of fillConsumed.
const oldContent = `CONCAT('{"order":"',msg_id,'","note":"',REPEAT('x',250),'"}')`

// fillConsumed writes a million rows that were consumed two hours ago. They are not in the binlog: nobody reads that here.
func (s *setting) fillConsumed() {
	s.t.Helper()
	conn, err := s.db.Conn(s.t.Context())
	require.NoError(s.t, err)
	defer func() { assert.NoError(s.t, conn.Close()) }()
	begun := time.Now()
	exec := func(statement string, args ...any) {
		_, err := conn.ExecContext(s.t.Context(), statement, args...)
		require.NoError(s.t, err, statement)
	}
	exec("SET SESSION sql_log_bin=0, unique_checks=0")
	digits := "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	for part := range 10 {
		exec(fmt.Sprintf(`INSERT INTO %s (msg_id, topic, msg_content, status, create_time, update_time)
			SELECT msg_id, ?, %s, 3, NOW() - INTERVAL 3 HOUR, NOW() - INTERVAL 2 HOUR
			FROM (SELECT CONCAT('old-', %d + a.d + 10*b.d + 100*c.d + 1000*e.d + 10000*f.d) AS msg_id
				FROM %[4]s a, %[4]s b, %[4]s c, %[4]s e, %[4]s f) AS made`, s.table, oldContent, part*million/10, digits), s.topic)
	}
	exec("SET SESSION sql_log_bin=1, unique_checks=1")
	require.Equal(s.t, million, s.count(s.table))
	s.t.Logf("a million consumed rows written in %s", time.Since(begun).Round(time.Second))
}

// mayMakeHistory lets the archive make its table.
func (s *setting) mayMakeHistory() {
	s.t.Helper()
	_, err := s.db.ExecContext(s.t.Context(), fmt.Sprintf("GRANT SELECT, INSERT, CREATE, ALTER ON %s_history TO '%s'@'%%'", s.table, s.settings["source.primary.user"]))
	require.NoError(s.t, err)
}

// committing starts the services; the returned function ends them.
func (s *setting) committing() (halt func()) {
	s.t.Helper()
	cfg := workload.Default([]string{s.table}, []string{s.topic})
	cfg.Orders, cfg.Rollbacks, cfg.Savepoints, cfg.Headers, cfg.Key = "", 0, 0, 0, workload.NoKey
	cfg.MinBytes, cfg.MaxBytes, cfg.MaxTxn, cfg.Rate, cfg.Writers = 200, 400, 1, 2000, 16
	writer, err := workload.New(s.db, cfg, s.ledger)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1) // size 1: the writers must be able to leave
	go func() {
		_, err := writer.Run(ctx)
		ended <- err
	}()
	s.t.Cleanup(cancel)
	return func() {
		cancel()
		require.NoError(s.t, <-ended)
	}
}

// during measures the writers for a while.
func (s *setting) during(what string, d time.Duration) oracle.Latency {
	s.t.Helper()
	return s.until(what, nil, d)
}

// until measures the writers until a command has ended, or for as long as limit.
func (s *setting) until(what string, cmd *command, limit time.Duration) oracle.Latency {
	s.t.Helper()
	var ended <-chan struct{} // nil never comes
	if cmd != nil {
		ended = cmd.exited
	}
	begun := time.Now()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	whole, commit := s.ledger.Commits(begun, time.Now())
	s.t.Logf("%-16s %s, %.0f commits/s: transaction p50 %s, p90 %s, p99 %s, max %s; COMMIT alone p50 %s, p99 %s", what, time.Since(begun).Round(time.Second),
		float64(whole.N)/time.Since(begun).Seconds(), whole.P50, whole.P90, whole.P99, whole.Max, commit.P50, commit.P99)
	return whole
}

func (s *setting) count(query string) int {
	s.t.Helper()
	var n int
	require.NoError(s.t, s.db.QueryRowContext(s.t.Context(), "SELECT COUNT(*) FROM "+query).Scan(&n), query)
	return n
}

// command is the archive at work.
type command struct {
	exited   chan struct{} // closed once it has ended; the rest may be read then
	out, log bytes.Buffer
	took     time.Duration
	err      error
	process  *os.Process
}

func (s *setting) archive() *command {
	s.t.Helper()
	c := &command{exited: make(chan struct{})}
	cmd := exec.CommandContext(s.t.Context(), harness.Binary(s.t), "archive", "--config",
		s.settings.With("archive.enabled", true, "archive.after", "1h").Write(s.t)) // not the relay's: it would begin at once
	cmd.Stdout, cmd.Stderr = &c.out, &c.log
	begun := time.Now()
	require.NoError(s.t, cmd.Start())
	c.process = cmd.Process
	go func() {
		defer close(c.exited)
		c.err = cmd.Wait()
		c.took = time.Since(begun)
	}()
	return c
}

// end stops the archive if it still runs, which it should not.
func (c *command) end(t *testing.T) {
	t.Helper()
	select {
	case <-c.exited:
	default:
		assert.NoError(t, c.process.Signal(syscall.SIGTERM))
		<-c.exited
	}
	assert.NoError(t, c.err, c.log.String())
}
