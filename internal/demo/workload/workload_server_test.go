//go:build !unit

package workload_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/rig"
)

func open(t *testing.T, server *rig.Server) *sql.DB {
	t.Helper()
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Passwd, cfg.InterpolateParams = "tcp", server.Addr, server.User, server.Password, true
	cfg.Timeout, cfg.ReadTimeout = 2*time.Second, 5*time.Second
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return db
}

func write(t *testing.T, db *sql.DB, cfg workload.Config) (*oracle.Ledger, workload.Stats) {
	t.Helper()
	ledger := oracle.NewLedger()
	writer, err := workload.New(db, cfg, ledger)
	require.NoError(t, err)
	require.NoError(t, writer.Prepare(t.Context()))
	stats, err := writer.Run(t.Context())
	require.NoError(t, err)
	return ledger, stats
}

// verify compares the ledger with the table through a perfect consumer, made of the rows themselves.
func verify(t *testing.T, db *sql.DB, ledger *oracle.Ledger, tables ...string) *oracle.Verdict {
	t.Helper()
	var records []oracle.Record
	for _, table := range tables {
		records = append(records, copies(t, db, table)...)
		_, err := db.ExecContext(t.Context(), "UPDATE "+table+" SET status = 1")
		require.NoError(t, err)
	}
	state, err := workload.Rows(t.Context(), db, tables...)
	require.NoError(t, err)
	return oracle.Judge(ledger, oracle.Evidence{Records: records, Rows: state}, oracle.Options{})
}

// copies returns a table's rows as records, in the order of their ids.
func copies(t *testing.T, db *sql.DB, table string) []oracle.Record {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT id, msg_id, topic, msg_content, COALESCE(msg_key, msg_id) FROM "+table+" ORDER BY id")
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	var records []oracle.Record
	for rows.Next() {
		r := oracle.Record{Seen: time.Now()}
		var content []byte
		require.NoError(t, rows.Scan(&r.Offset, &r.MsgID, &r.Topic, &content, &r.Key))
		r.Value = oracle.HashOf(content)
		records = append(records, r)
	}
	require.NoError(t, rows.Err())
	return records
}

func TestWriterKeepsATrueLedger(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(testing.TB, ...rig.Option) *rig.Server{"MySQL": rig.MySQL, "MariaDB": rig.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			db, database := open(t, s), s.Database(t)
			cfg := workload.Default([]string{database + ".local_message_1", database + ".local_message_2"}, []string{"a", "b"})
			cfg.Rows, cfg.Headers = 2000, 0 // the perfect consumer makes no headers
			ledger, stats := write(t, db, cfg)
			assert.Equal(t, 2000, stats.Rows)
			assert.Equal(t, 2000, ledger.Counts().Committed)
			assert.Positive(t, ledger.Counts().RolledBack)
			v := verify(t, db, ledger, cfg.Tables...)
			assert.NoError(t, v.Err())
			var orders int
			require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+cfg.Orders).Scan(&orders))
			assert.Positive(t, orders)
			n, err := workload.Open(t.Context(), db, cfg.Tables...)
			require.NoError(t, err)
			assert.Zero(t, n)
		})
	}
}

func TestWriterServesThePatternsOwnTable(t *testing.T) {
	t.Parallel()
	s := rig.MySQL(t)
	db, table := open(t, s), s.Database(t)+".local_message"
	cfg := workload.Default([]string{table}, []string{"a"})
	cfg.Rows, cfg.Headers, cfg.Key, cfg.Orders = 50, 0, workload.KeyContent, ""
	write(t, db, cfg)
	var key, order string
	err := db.QueryRowContext(t.Context(), "SELECT JSON_UNQUOTE(JSON_EXTRACT(msg_content, '$.order_id')), msg_id FROM "+table+
		" WHERE JSON_EXTRACT(msg_content, '$.order_id') <> msg_id LIMIT 1").Scan(&key, &order)
	require.NoError(t, err)
	assert.NotEmpty(t, key)
	_, err = db.ExecContext(t.Context(), "SELECT msg_key FROM "+table)
	require.Error(t, err)
}

func TestWriterDelaysMessages(t *testing.T) {
	t.Parallel()
	s := rig.MySQL(t)
	db, table := open(t, s), s.Database(t)+".local_message"
	cfg := workload.Default([]string{table}, []string{"a"})
	cfg.Rows, cfg.Delayed = 50, 1
	write(t, db, cfg)
	var early, late int
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT SUM(next_retry_time < create_time), SUM(next_retry_time > create_time + INTERVAL 6 SECOND)
		FROM `+table).Scan(&early, &late))
	assert.Zero(t, early)
	assert.Zero(t, late)
	unsettled, err := workload.Unsettled(t.Context(), db, 10, table)
	require.NoError(t, err)
	assert.Empty(t, unsettled, "a delayed message is the sweeper's")
}

func TestWriterKeepsItsRate(t *testing.T) {
	t.Parallel()
	s := rig.MySQL(t)
	db, table := open(t, s), s.Database(t)+".local_message"
	cfg := workload.Default([]string{table}, []string{"a"})
	cfg.Rows, cfg.Rate, cfg.Rollbacks = 200, 200, 0
	_, stats := write(t, db, cfg)
	assert.InDelta(t, 1.0, stats.Elapsed.Seconds(), 0.5)
}

func TestWriterSurvivesAServerCrash(t *testing.T) {
	t.Parallel()
	s := rig.MySQL(t, rig.Own())
	db, table := open(t, s), s.Database(t)+".local_message"
	cfg := workload.Default([]string{table}, []string{"a"})
	cfg.Headers, cfg.TxnTimeout = 0, 5*time.Second
	ledger := oracle.NewLedger()
	writer, err := workload.New(db, cfg, ledger)
	require.NoError(t, err)
	require.NoError(t, writer.Prepare(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan workload.Stats, 1) // size 1: the writer must be able to leave
	go func() {
		stats, err := writer.Run(ctx)
		assert.NoError(t, err)
		ended <- stats
	}()
	for round := range 3 {
		more := ledger.Counts().Committed + 200
		require.Eventually(t, func() bool { return ledger.Counts().Committed >= more }, 30*time.Second, 10*time.Millisecond, "round %d", round)
		s.Kill(t)
		s.Start(t)
	}
	more := ledger.Counts().Committed + 200
	require.Eventually(t, func() bool { return ledger.Counts().Committed >= more }, 30*time.Second, 10*time.Millisecond)
	stop()
	stats := <-ended
	assert.Positive(t, stats.Errors)
	t.Logf("%+v, last error %v", ledger.Counts(), stats.LastError)
	assert.NoError(t, verify(t, db, ledger, table).Err())
}

func TestWriterLosesPatience(t *testing.T) {
	t.Parallel()
	s := rig.MySQL(t)
	db := open(t, s)
	cfg := workload.Default([]string{s.Database(t) + ".missing"}, []string{"a"})
	cfg.Patience, cfg.Orders = 200*time.Millisecond, ""
	writer, err := workload.New(db, cfg, oracle.NewLedger())
	require.NoError(t, err)
	_, err = writer.Run(t.Context())
	require.ErrorContains(t, err, "no transaction succeeded for 200ms")
}
