//go:build bench

package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestStagedBodies compares messages of 20 kB that the table holds with such as it only refers to: what the database writes, what
// a business transaction waits for, and how late a message is.
func TestStagedBodies(t *testing.T) {
	const rows, rate = 6000, 300
	for _, variant := range []struct {
		name   string
		staged float64
	}{{"InTheTable", 0}, {"Staged", 1}} {
		t.Run(variant.name, func(t *testing.T) {
			server := rig.MySQL(t, rig.Own())
			s := newSetting(t, server)
			_, err := s.db.ExecContext(t.Context(), "ALTER TABLE "+s.table+" ADD COLUMN body_ref VARCHAR(320) NULL")
			require.NoError(t, err)
			kafka := rig.Kafka(t)
			stage, closeIt, err := harness.OpenStager(kafka.Brokers, kafka.Topic(t, 3))
			require.NoError(t, err)
			defer closeIt()
			relay := s.start()
			load := func(cfg *workload.Config) {
				cfg.MaxTxn, cfg.Rate, cfg.MinBytes, cfg.MaxBytes, cfg.Staged, cfg.Stage = 1, rate, 20_000, 20_000, variant.staged, stage
			}
			s.write(func(cfg *workload.Config) { load(cfg); cfg.Rows, cfg.Prefix = 600, "warm" })
			binlog, redo := s.written(t)
			s.write(func(cfg *workload.Config) { load(cfg); cfg.Rows = rows })
			v := s.verdict(relay)
			binlogAfter, redoAfter := s.written(t)
			t.Logf("%s: a message writes %d bytes of binlog and %d of redo log; commit to consumed p50 %s, p99 %s; from COMMIT sent p50 %s, p99 %s",
				variant.name, (binlogAfter-binlog)/rows, (redoAfter-redo)/rows, v.Latency.P50.Round(100*time.Microsecond), v.Latency.P99.Round(100*time.Microsecond),
				v.FromSend.P50.Round(100*time.Microsecond), v.FromSend.P99.Round(100*time.Microsecond))
		})
	}
}

// written returns the bytes of the binlog and of InnoDB's redo log so far.
func (s *setting) written(t *testing.T) (binlog, redo int) {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), "SHOW BINARY LOGS")
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var name, encrypted string
		var size int
		require.NoError(t, rows.Scan(&name, &size, &encrypted))
		binlog += size
	}
	require.NoError(t, rows.Err())
	var name string
	require.NoError(t, s.db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'").Scan(&name, &redo))
	return binlog, redo
}
