//go:build bench

package bench

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/consume"
	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/race"
	"example.com/outbox-relay/test/rig"
)

const memoryLimit = 100 << 20

// servers are the two databases that are measured.
var servers = []struct {
	name  string
	start func(testing.TB, ...rig.Option) *rig.Server
}{{"MySQL", rig.MySQL}, {"MariaDB", rig.MariaDB}}

// setting is one measurement's world.
type setting struct {
	t        *testing.T
	db       *sql.DB
	table    string
	topic    string
	settings harness.Settings
	ledger   *oracle.Ledger
	log      *oracle.Log
}

func newSetting(t *testing.T, server *rig.Server) *setting {
	t.Helper()
	if race.Enabled {
		t.Fatal("the race detector slows everything down: measure without -race")
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Passwd, cfg.InterpolateParams = "tcp", server.Addr, server.User, server.Password, true
	connector, err := mysql.NewConnector(cfg)
	require.NoError(t, err)
	kafka, redis, database := rig.Kafka(t), rig.Redis(t), server.Database(t)
	s := &setting{
		t: t, db: sql.OpenDB(connector), table: database + ".local_message", topic: kafka.Topic(t, 3),
		ledger: oracle.NewLedger(), log: oracle.NewLog(),
	}
	s.db.SetMaxIdleConns(24)
	t.Cleanup(func() { assert.NoError(t, s.db.Close()) })
	require.NoError(t, workload.CreateMessages(t.Context(), s.db, s.table, false))
	user, password := server.RelayUser(t, rig.MinimalImages())
	s.settings = harness.Target{
		Primary: harness.Endpoint{Addr: server.Addr, User: user, Password: password},
		Tables:  []string{s.table}, Brokers: kafka.Brokers, RedisURL: redis.URL(),
	}.Settings(t).With("redis.prefix", redis.Prefix(t))
	consumer, err := consume.Open(consume.Config{Brokers: kafka.Brokers, Topics: []string{s.topic}}, s.log)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1) // size 1: the consumer must be able to leave
	go func() { ended <- consumer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	return s
}

func (s *setting) start() *harness.Relay {
	s.t.Helper()
	r := harness.Start(s.t, s.settings)
	r.WaitLeading(30 * time.Second)
	return r
}

func (s *setting) write(change func(*workload.Config)) workload.Stats {
	s.t.Helper()
	cfg := workload.Default([]string{s.table}, []string{s.topic})
	cfg.Orders, cfg.Rollbacks, cfg.Savepoints, cfg.Headers, cfg.Key = "", 0, 0, 0, workload.NoKey
	cfg.MinBytes, cfg.MaxBytes = 200, 400
	change(&cfg)
	writer, err := workload.New(s.db, cfg, s.ledger)
	require.NoError(s.t, err)
	stats, err := writer.Run(s.t.Context())
	require.NoError(s.t, err)
	s.t.Logf("written: %d rows in %s (%.0f/s)", stats.Rows, stats.Elapsed.Round(time.Millisecond), float64(stats.Rows)/stats.Elapsed.Seconds())
	return stats
}

// verdict judges the run and logs the relay's CPU and memory.
func (s *setting) verdict(relay *harness.Relay) *oracle.Verdict {
	s.t.Helper()
	harness.WaitSettled(s.t, time.Minute, s.db, s.table)
	rows, err := workload.Rows(s.t.Context(), s.db, s.table)
	require.NoError(s.t, err)
	v := oracle.Judge(s.ledger, oracle.Evidence{Records: s.log.Records(), Rows: rows}, oracle.Options{})
	memory := relay.Memory()
	s.t.Logf("relay: cpu %s, memory %.1f MiB now, %.1f MiB at its highest\n%s", relay.CPU(), mib(memory.Now), mib(memory.Peak), v)
	require.NoError(s.t, v.Err())
	assert.Less(s.t, memory.Peak, uint64(memoryLimit))
	return v
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// TestBacklog writes 200 000 rows in transactions of 500 while the relay is down.
func TestBacklog(t *testing.T) {
	const rows = 200_000
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			s := newSetting(t, server.start(t))
			code, _ := s.start().Stop() // leaves a checkpoint
			require.Zero(t, code)
			s.write(func(cfg *workload.Config) {
				cfg.Rows, cfg.MinTxn, cfg.MaxTxn, cfg.Batch, cfg.Writers = rows, 500, 500, 500, 2
			})
			begun := time.Now()
			relay := harness.Start(t, s.settings)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			require.NoError(t, s.log.Wait(ctx, rows))
			delivered := time.Since(begun)
			harness.Eventually(t, 2*time.Minute, "all marked", func() (bool, string) {
				n, err := workload.Open(t.Context(), s.db, s.table)
				return err == nil && n == 0, fmt.Sprint(n, err)
			})
			marked := time.Since(begun)
			t.Logf("backlog of %d: delivered in %s (%.0f/s), marked in %s (%.0f/s)", rows,
				delivered.Round(time.Millisecond), rows/delivered.Seconds(), marked.Round(time.Millisecond), rows/marked.Seconds())
			assert.Less(t, marked, 15*time.Second)
			s.verdict(relay)
		})
	}
}

// TestLatency commits single rows at 1 000 a second, each a transaction of its own.
func TestLatency(t *testing.T) {
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			s := newSetting(t, server.start(t))
			relay := s.start()
			s.write(func(cfg *workload.Config) { cfg.Rows, cfg.MaxTxn, cfg.Rate, cfg.Prefix = 2000, 1, 1000, "warm" })
			cpu := relay.CPU()
			measured := s.write(func(cfg *workload.Config) { cfg.Rows, cfg.MaxTxn, cfg.Rate = 20_000, 1, 1000 })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, s.log.Wait(ctx, 22_000))
			v := s.verdict(relay)
			t.Logf("commit to consumed at %.0f/s: p50 %s, p90 %s, p99 %s, max %s; from COMMIT sent: p50 %s, p99 %s; relay cpu %.0f %%",
				float64(measured.Rows)/measured.Elapsed.Seconds(), v.Latency.P50, v.Latency.P90, v.Latency.P99, v.Latency.Max,
				v.FromSend.P50, v.FromSend.P99, 100*(relay.CPU()-cpu).Seconds()/measured.Elapsed.Seconds())
			assert.Less(t, v.Latency.P50, 3*time.Millisecond)
		})
	}
}
