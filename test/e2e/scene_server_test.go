//go:build !unit

package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/demo/consume"
	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// cast are the servers of a test and how many tables and topics it has. Zero values are the shared ones, one table and
// two topics of three partitions.
type cast struct {
	sql     *rig.Server
	replica *rig.Server // the binlog is read here, when set
	kafka   *rig.KafkaServer
	redis   *rig.RedisServer
	tables  int
	topics  int
	// missing topics are consumed and written, but do not exist yet.
	missing int
	// prefix begins the keys in Redis; "" makes one.
	prefix string
	// plain tables have the pattern's own columns only.
	plain bool
}

// scene is one test's world.
type scene struct {
	t        *testing.T
	cast     cast
	source   string // its name, and the database's
	db       *sql.DB
	binlog   *sql.DB // of the server whose binlog is read
	tables   []string
	topics   []string
	missing  []string
	settings harness.Settings
	ledger   *oracle.Ledger
	log      *oracle.Log
	sampler  *harness.Sampler
}

// newScene sets up tables, topics, a consumer, a sampler of the checkpoint, and the relay's settings.
func newScene(t *testing.T, c cast) *scene {
	t.Helper()
	if c.sql == nil {
		c.sql = rig.MySQL(t)
	}
	if c.kafka == nil {
		c.kafka = rig.Kafka(t)
	}
	if c.redis == nil {
		c.redis = rig.Redis(t)
	}
	s := &scene{t: t, cast: c, db: open(t, c.sql), ledger: oracle.NewLedger(), log: oracle.NewLog()}
	s.binlog = s.db
	if c.replica != nil {
		s.binlog = open(t, c.replica)
	}
	if s.cast.prefix == "" {
		s.cast.prefix = c.redis.Prefix(t)
	}
	database := c.sql.Database(t)
	s.source = database
	for i := range max(1, c.tables) {
		s.tables = append(s.tables, fmt.Sprintf("%s.local_message_%d", database, i))
		require.NoError(t, workload.CreateMessages(t.Context(), s.db, s.tables[i], !c.plain))
	}
	topics := c.topics
	if topics == 0 {
		topics = 2
	}
	for range topics {
		s.topics = append(s.topics, c.kafka.Topic(t, 3))
	}
	for i := range c.missing {
		// A topic's name must fit the table's column of 64 characters.
		s.missing = append(s.missing, fmt.Sprintf("%s-late%d", s.topics[0], i))
	}
	s.settings = s.relaySettings(database)
	s.consume()
	s.sampler = &harness.Sampler{
		Checkpoint: harness.NewCheckpointReader(t, c.redis.URL(), s.cast.prefix, s.source),
		Primary:    s.db, Binlog: s.binlog, Flavor: c.sql.Flavor, Tables: s.tables, Ledger: s.ledger,
	}
	s.sampler.Start(t)
	return s
}

// open returns a pool that costs one round trip a statement and gives up on a server that is away within seconds.
func open(t *testing.T, server *rig.Server) *sql.DB {
	t.Helper()
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Passwd, cfg.InterpolateParams = "tcp", server.Addr, server.User, server.Password, true
	cfg.Timeout, cfg.ReadTimeout = 2*time.Second, 20*time.Second
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(24)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return db
}

func (s *scene) relaySettings(database string) harness.Settings {
	s.t.Helper()
	user, password := s.cast.sql.RelayUser(s.t)
	settings := harness.Target{
		Primary:  harness.Endpoint{Addr: s.cast.sql.Addr, User: user, Password: password},
		Tables:   []string{database + `./local_message_\d+/`},
		Brokers:  s.cast.kafka.Brokers,
		RedisURL: s.cast.redis.URL(),
	}.Settings(s.t).With("source.name", s.source, "redis.prefix", s.cast.prefix)
	if s.cast.replica != nil {
		settings = settings.With("source.replica.address", s.cast.replica.Addr)
	}
	if s.cast.plain {
		settings = settings.With("router.key", "/order_id")
	}
	return settings
}

// consume reads every topic until the test ends.
func (s *scene) consume() {
	s.t.Helper()
	consumer, err := consume.Open(consume.Config{Brokers: s.cast.kafka.Brokers, Topics: slices.Concat(s.missing, s.topics)}, s.log)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1) // size 1: the consumer must be able to leave
	go func() { ended <- consumer.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		assert.NoError(s.t, <-ended)
	})
}

// start starts a relay and waits until it leads.
func (s *scene) start() *harness.Relay {
	s.t.Helper()
	r := harness.Start(s.t, s.settings)
	r.WaitLeading(30 * time.Second)
	return r
}

// again starts another relay on a console of its own and does not wait.
func (s *scene) again() *harness.Relay {
	s.t.Helper()
	return harness.Start(s.t, s.settings.With("console.listen", harness.FreeAddr(s.t)))
}

// workload returns the default mixture for this scene's tables and topics, for cfg to change.
func (s *scene) workload(change func(*workload.Config)) workload.Config {
	cfg := workload.Default(s.tables, slices.Concat(s.missing, s.topics))
	if s.cast.plain {
		cfg.Key, cfg.Headers = workload.KeyContent, 0
	}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// write writes to the end of the workload.
func (s *scene) write(change func(*workload.Config)) workload.Stats {
	s.t.Helper()
	return s.writing(change)()
}

// writing starts to write; the returned function stops that, if it has no end of its own, and waits for it.
func (s *scene) writing(change func(*workload.Config)) (finish func() workload.Stats) {
	s.t.Helper()
	cfg := s.workload(change)
	writer, err := workload.New(s.db, cfg, s.ledger)
	require.NoError(s.t, err)
	require.NoError(s.t, writer.Prepare(s.t.Context()))
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	var (
		stats  workload.Stats
		failed error
		ended  = make(chan struct{})
	)
	go func() {
		defer close(ended)
		stats, failed = writer.Run(ctx)
	}()
	return func() workload.Stats {
		s.t.Helper()
		if cfg.Rows == 0 {
			cancel()
		}
		<-ended
		require.NoError(s.t, failed)
		s.t.Logf("written: %d transactions, %d rows in %s, %d errors, last %v",
			s.ledger.Counts().Transactions, stats.Rows, stats.Elapsed.Round(time.Millisecond), stats.Errors, stats.LastError)
		return stats
	}
}

// until polls for a while and tells whether it came true: a verdict says more about what is missing than a time-out.
func (s *scene) until(limit time.Duration, done func() bool) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}

// committed waits until the writers have committed so many more rows.
func (s *scene) committed(more int, limit time.Duration) {
	s.t.Helper()
	goal := s.ledger.Counts().Committed + more
	harness.Eventually(s.t, limit, "rows committed", func() (bool, string) {
		now := s.ledger.Counts().Committed
		return now >= goal, fmt.Sprintf("%d of %d", now, goal)
	})
}

// look samples the checkpoint while no relay runs: nothing moves then, so what it covers must be settled. There may be
// none yet.
func (s *scene) look() {
	s.t.Helper()
	if err := s.sampler.Take(s.t.Context()); !errors.Is(err, harness.ErrNoCheckpoint) {
		require.NoError(s.t, err)
	}
}

// judge waits until everything is settled and consumed, and until no more comes, and returns the verdict.
func (s *scene) judge(limit time.Duration, opts oracle.Options) *oracle.Verdict {
	s.t.Helper()
	begun := time.Now()
	s.until(limit, func() bool {
		open, err := workload.Open(s.t.Context(), s.db, s.tables...)
		return err == nil && open == 0
	})
	settled := time.Since(begun)
	rows, err := workload.Rows(s.t.Context(), s.db, s.tables...)
	require.NoError(s.t, err)
	sent := 0
	for _, row := range rows {
		if row.Status != outbox.Dead {
			sent++
		}
	}
	s.until(10*time.Second, func() bool { return s.log.Distinct() >= sent })
	// A copy or a phantom would come after the rest: wait until nothing has come for half a second.
	last, since := s.log.Len(), time.Now()
	s.until(10*time.Second, func() bool {
		if n := s.log.Len(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
	samples, fences := s.sampler.Evidence()
	opts.Source = s.source
	v := oracle.Judge(s.ledger, oracle.Evidence{Records: s.log.Records(), Rows: rows, Samples: samples, Fences: fences}, opts)
	s.t.Logf("settled %s after the last commit\n%s", settled.Round(10*time.Millisecond), v)
	return v
}

// exact is judge for a run that must be without fault.
func (s *scene) exact(limit time.Duration, opts oracle.Options) *oracle.Verdict {
	s.t.Helper()
	v := s.judge(limit, opts)
	require.NoError(s.t, v.Err())
	return v
}

// caughtUp waits until the saved checkpoint has reached the binlog's present end.
func (s *scene) caughtUp(limit time.Duration) {
	s.t.Helper()
	end, err := harness.BinlogEnd(s.t.Context(), s.binlog, s.cast.sql.Flavor)
	require.NoError(s.t, err)
	harness.Eventually(s.t, limit, "checkpoint at the binlog's end "+end.String(), func() (bool, string) {
		saved, err := s.sampler.Checkpoint.Read(s.t.Context())
		if err != nil {
			return false, err.Error()
		}
		order, err := position.Compare(end.File, end.Pos, saved.Position.File, saved.Position.Pos)
		return err == nil && order <= 0, "saved " + saved.Position.String()
	})
}
