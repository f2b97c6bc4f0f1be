//go:build !unit

package demo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"example.com/outbox-relay/internal/demo"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/test/rig"
)

// Without a relay all is lost, and the demo must say so. (With one it is tested by test/demo.)
func TestRunWithoutARelayIsABadVerdict(t *testing.T) {
	t.Parallel()
	kafka, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, demo.Topics()...))
	require.NoError(t, err)
	t.Cleanup(kafka.Close)
	server := rig.MySQL(t)
	cfg := config(t, router.Config{Source: "default"})
	cfg.Table.Database = server.Database(t)
	cfg.DB = server.DB(t)
	cfg.Writers = 1 // two may deadlock, and a transaction that failed is counted and done again
	cfg.Brokers.Addresses = kafka.ListenAddrs()
	require.NoError(t, server.Exec(t.Context(), outbox.Schema(cfg.Table, outbox.SchemaOptions{})))
	report, err := demo.Run(t.Context(), cfg, func(demo.Progress) {})
	require.NoError(t, err)
	assert.False(t, report.OK)
	assert.Positive(t, report.Committed)
	assert.Equal(t, report.Committed, report.Lost)
	assert.Zero(t, report.Delivered)
	assert.Equal(t, 20, report.Transactions)
	var tables, rows int
	require.NoError(t, cfg.DB.QueryRowContext(t.Context(),
		"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?", cfg.Table.Database).Scan(&tables))
	assert.Equal(t, 1, tables, "the business table is dropped")
	require.NoError(t, cfg.DB.QueryRowContext(t.Context(),
		"SELECT COUNT(*) FROM "+outbox.QuoteTable(cfg.Table)+" WHERE msg_id LIKE ?", report.Prefix+"%").Scan(&rows))
	assert.Equal(t, report.Committed, rows)
}
