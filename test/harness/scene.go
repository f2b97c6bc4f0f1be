package harness

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/outbox-relay/internal/demo/consume"
	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/rig"
)

// Cast are the servers of a scene and how many tables and topics it has. Zero values are the shared servers, one table
// and two topics of three partitions.
type Cast struct {
	SQL     *rig.Server
	Replica *rig.Server // the binlog is read here, when set
	Kafka   *rig.KafkaServer
	Redis   *rig.RedisServer
	Tables  int
	Topics  int
	// Missing topics are consumed and written, but do not exist yet.
	Missing int
	// Prefix begins the keys in Redis; "" makes one.
	Prefix string
	// Plain tables have the pattern's own columns only. Keys are in the content.
	Plain bool
	// Silent keeps the sweeper from what the stream should bring (mode A of the stories): it only sends what was given to
	// it. A pending row that nobody has given to it stays as it is.
	Silent bool
	// Patient leaves the sweeper as it is by default. Else it is hasty (mode B), so that no story waits for it.
	Patient bool
}

// Scene is one test's world: tables, topics and Redis keys of its own, the writers' ledger, a consumer of every topic, a
// sampler of the checkpoint, and the relay's settings.
type Scene struct {
	Cast     Cast
	Source   string // its name
	Database string
	DB       *sql.DB // of the administrator
	Binlog   *sql.DB // of the server whose binlog is read
	Tables   []string
	Topics   []string
	Missing  []string
	User     string // the relay's
	Settings Settings
	Ledger   *oracle.Ledger
	Log      *oracle.Log
	Sampler  *Sampler

	t      testing.TB
	relays []*Relay // all that were started
}

// NewScene sets up a scene; all of it ends with the test.
func NewScene(t testing.TB, c Cast) *Scene {
	t.Helper()
	if c.SQL == nil {
		c.SQL = rig.MySQL(t)
	}
	if c.Kafka == nil {
		c.Kafka = rig.Kafka(t)
	}
	if c.Redis == nil {
		c.Redis = rig.Redis(t)
	}
	s := &Scene{t: t, Cast: c, DB: Pool(t, c.SQL), Ledger: oracle.NewLedger(), Log: oracle.NewLog()}
	s.Binlog = s.DB
	if c.Replica != nil {
		s.Binlog = Pool(t, c.Replica)
	}
	s.Database = c.SQL.Database(t)
	s.Source = "scene" + s.Database[strings.LastIndexByte(s.Database, '_'):] // a source's name may not be as long as a database's
	for i := range max(1, c.Tables) {
		s.Tables = append(s.Tables, fmt.Sprintf("%s.local_message_%d", s.Database, i))
		if err := workload.CreateMessages(t.Context(), s.DB, s.Tables[i], !c.Plain); err != nil {
			t.Fatal(err)
		}
	}
	topics := c.Topics
	if topics == 0 {
		topics = 2
	}
	for range topics {
		s.Topics = append(s.Topics, c.Kafka.Topic(t, 3))
	}
	for i := range c.Missing {
		// A topic's name must fit the table's column of 64 characters.
		s.Missing = append(s.Missing, fmt.Sprintf("%s-late%d", s.Topics[0], i))
	}
	if s.Cast.Prefix == "" {
		s.Cast.Prefix = c.Redis.Prefix(t)
	}
	s.settle()
	s.Consume(slices.Concat(s.Missing, s.Topics)...)
	s.Sampler = &Sampler{
		Checkpoint: NewCheckpointReader(t, c.Redis.URL(), s.Cast.Prefix, s.Source),
		Primary:    s.DB, Binlog: s.Binlog, Flavor: c.SQL.Flavor, Tables: s.Tables, Ledger: s.Ledger,
	}
	s.Sampler.Start(t)
	return s
}

// settle makes the relay's settings.
func (s *Scene) settle() {
	s.t.Helper()
	user, password := s.Cast.SQL.RelayUser(s.t, rig.On(s.Database))
	s.User = user
	s.Settings = Target{
		Primary:  Endpoint{Addr: s.Cast.SQL.Addr, User: user, Password: password},
		Tables:   []string{s.Database + `./local_message_\d+/`},
		Brokers:  s.Cast.Kafka.Brokers,
		RedisURL: s.Cast.Redis.URL(),
	}.Settings(s.t).With("source.name", s.Source, "redis.prefix", s.Cast.Prefix)
	if s.Cast.Replica != nil {
		s.Set("source.replica.address", s.Cast.Replica.Addr)
	}
	if s.Cast.Plain {
		s.Set("router.key", "/order_id")
	}
	switch {
	case s.Cast.Silent:
		s.Set("sweep.interval", "1s", "sweep.grace", "1h")
	case !s.Cast.Patient:
		s.Sweeping()
	}
}

// Set changes settings of the relays that are started from now on.
func (s *Scene) Set(pairs ...any) { s.Settings = s.Settings.With(pairs...) }

// Sweeping gives the relays that are started from now on their sweeper back.
func (s *Scene) Sweeping() { s.Set("sweep.interval", "1s", "sweep.grace", "500ms") }

// Pool returns a pool that costs one round trip a statement and gives up on a server that is away within seconds.
func Pool(t testing.TB, server *rig.Server) *sql.DB {
	t.Helper()
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Passwd, cfg.InterpolateParams = "tcp", server.Addr, server.User, server.Password, true
	cfg.Timeout, cfg.ReadTimeout = 2*time.Second, 20*time.Second
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(24)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the pool: %v", err)
		}
	})
	return db
}

// Consume reads topics from their start until the test ends.
func (s *Scene) Consume(topics ...string) {
	s.t.Helper()
	consumer, err := consume.Open(consume.Config{Brokers: s.Cast.Kafka.Brokers, Topics: topics}, s.Log)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1) // size 1: the consumer must be able to leave
	go func() { ended <- consumer.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

// Start starts a relay and waits until it leads.
func (s *Scene) Start() *Relay {
	s.t.Helper()
	r := s.Launch()
	s.Leads(r)
	return r
}

// Leads waits until a relay leads and has begun to work: one that only stands by is ready, too.
func (s *Scene) Leads(r *Relay) {
	s.t.Helper()
	r.WaitLeading(30 * time.Second)
	r.WaitReady(30 * time.Second)
}

// Launch starts a relay on a console of its own and does not wait.
func (s *Scene) Launch() *Relay {
	s.t.Helper()
	r := Start(s.t, s.Settings.With("console.listen", FreeAddr(s.t)))
	s.relays = append(s.relays, r)
	return r
}

// Move makes another server the scene's: its writers', its judge's, its sampler's.
func (s *Scene) Move(to *rig.Server) {
	s.t.Helper()
	s.Cast.SQL = to
	s.DB = Pool(s.t, to)
	s.Binlog = s.DB
	s.Sampler.Move(s.DB)
}

// Writing starts to write a workload, the default mixture but for what change says; the returned function stops that, if
// it has no end of its own, and waits for it.
func (s *Scene) Writing(change func(*workload.Config)) (finish func() workload.Stats) {
	s.t.Helper()
	cfg := workload.Default(s.Tables, slices.Concat(s.Missing, s.Topics))
	if s.Cast.Plain {
		cfg.Key, cfg.Headers = workload.KeyContent, 0
	}
	if change != nil {
		change(&cfg)
	}
	writer, err := workload.New(s.DB, cfg, s.Ledger)
	if err == nil {
		err = writer.Prepare(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
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
		if failed != nil {
			s.t.Fatal(failed)
		}
		s.t.Logf("written: %d transactions, %d rows in %s, %d errors, last %v",
			s.Ledger.Counts().Transactions, stats.Rows, stats.Elapsed.Round(time.Millisecond), stats.Errors, stats.LastError)
		return stats
	}
}

// Write writes a workload to its end.
func (s *Scene) Write(change func(*workload.Config)) workload.Stats {
	s.t.Helper()
	return s.Writing(change)()
}

// Committed waits until the writers have committed so many more rows.
func (s *Scene) Committed(more int) {
	s.t.Helper()
	goal := s.Ledger.Counts().Committed + more
	if !Dwindles(30*time.Second, func() int { return goal - s.Ledger.Counts().Committed }) {
		s.t.Fatalf("the writers stand at %d committed rows of %d", s.Ledger.Counts().Committed, goal)
	}
}

// Look samples the checkpoint while no relay runs: nothing moves then, so what it covers must be settled. There may be
// none yet.
func (s *Scene) Look() {
	s.t.Helper()
	if err := s.Sampler.Take(s.t.Context()); err != nil && !errors.Is(err, ErrNoCheckpoint) {
		s.t.Fatal(err)
	}
}
