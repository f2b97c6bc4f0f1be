// Package store is the SQL that the relay runs on the local message tables: marking, claiming, looking up, counting, and the
// operator's desk; it also opens the leader's lock.
//
// It guarantees that every UPDATE of a status is guarded by the row's id, its msg_id and the statuses it may come from;
// that whatever is compared or written in time is the database's own clock in the server's own time zone; that no lock
// outlives a call; and that errors hold neither secrets nor data. It never decides by a SELECT, nor by a number of
// affected rows, that a row is gone. When to call what is the business of relay and sweeper.
//
// The SQL of a concept with tables of its own is with that concept: histories are in internal/archive/history, reports back in
// internal/reports/acks. Both make their statements of what a Table renders, and run them with Store.OnTable.
//
// # What next_retry_time means
//
// The column says whose a row is and when. Each value is made and recognised in due.go and nowhere else.
//
//	meaning       status            value                  set by                         ends by
//	the stream's  pending           NULL                   the service's INSERT           the ack, a deferral, a claim once the stream has passed it
//	delayed       pending           later                  the service's INSERT           its time: then it is due
//	due           pending, failed   now or earlier         Defer, Release, Retry, time    a claim
//	claimed       pending, failed   now + lease, with      Claim                          its outcome, Release, or the lease: then it is due
//	                                update_time = now
//	backing off   failed            now + delay            MarkFailed                     its time: then it is due
//	parked        pending           years 5000 to 7178,    Park                           ClaimParked
//	                                a Slot for each key
//	never         pending           beyond ten years       a writer who wants it so       that writer
//	(none)        the others        NULL                   whatever settles the row       a person's Retry
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Config says where the tables are and how they look.
type Config struct {
	mysql.Config // the primary
	// Tables are patterns `database.table`; a part between slashes is an anchored regular expression.
	Tables   []string
	Columns  outbox.Columns
	Statuses outbox.Statuses
	// MarkUser is the user who marks and StreamUser the one who reads the binlog, for the grants of Init; "" means User.
	MarkUser, StreamUser string
	// LockLease is after how long the leader's lock is free once its holder can't be heard; zero means 10 s.
	LockLease time.Duration
	// History names the history of a table, such as "{table}_history", where rows are archived; "" where they are not. Histories
	// are no message tables, and Lookup finds the rows in them.
	History string
	// Companions are what Init makes and Inspect checks beside the message tables.
	Companions []Companion

	foundRows bool // the driver's clientFoundRows: tests show that nothing depends on it
}

// defaultLockLease is the LockLease of a zero Config.
const defaultLockLease = 10 * time.Second

func (c Config) withDefaults() Config {
	if c.Columns == (outbox.Columns{}) {
		c.Columns = outbox.DefaultColumns()
	}
	if c.Statuses == (outbox.Statuses{}) {
		c.Statuses = outbox.DefaultStatuses()
	}
	if c.LockLease <= 0 {
		c.LockLease = defaultLockLease
	}
	return c
}

// Validate reports every problem of the configuration that can be seen without the server.
func (c Config) Validate() error {
	var problems []error
	if c.Addr == "" {
		problems = append(problems, errors.New("address is empty: give host:port"))
	}
	if _, err := mysql.ParsePatterns(c.Tables); err != nil {
		problems = append(problems, err)
	}
	numbers := c.withDefaults().Statuses
	for i, n := range numbers {
		if j := slices.Index(numbers[:i], n); j >= 0 {
			problems = append(problems, fmt.Errorf("statuses %s and %s are both %d: give each its own number", outbox.Status(j), outbox.Status(i), n))
		}
	}
	return errors.Join(problems...)
}

// Store runs the relay's SQL on one server. Its methods may be called concurrently.
type Store struct {
	cfg    Config
	log    zerolog.Logger
	server mysql.Server
	// marks is the one session that marks; work runs the short statements; scan runs those that may read much.
	marks, work, scan *mysql.Pool
	turn              atomic.Uint32 // which table's candidates are asked for first

	mu     sync.RWMutex
	tables []Table
	byName map[outbox.Table]*Table
	pools  []*mysql.Pool // all of them
}

// Open connects, and finds the tables. It fails when a pattern matches no table, or a table lacks a column.
func Open(ctx context.Context, cfg Config, log zerolog.Logger) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Store{cfg: cfg, log: log.With().Str("component", "store").Logger()}
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.Refresh(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect makes the pools. Together, and with those of NewPool, they are the most connections that the store ever has.
func (s *Store) connect() error {
	for _, pool := range []struct {
		into **mysql.Pool
		opts mysql.Options
	}{
		{&s.work, mysql.Options{Size: 4}},
		{&s.marks, mysql.Options{Size: 1, SmallImages: true}},
		{&s.scan, mysql.Options{Size: 2, ReadTimeout: mysql.SlowRead}},
	} {
		made, err := s.NewPool(pool.opts)
		if err != nil {
			return err
		}
		*pool.into = made
	}
	return nil
}

// NewPool returns a pool of sessions on the same server that is closed with the store: for statements that must not wait for the
// store's own, nor these for them.
func (s *Store) NewPool(opts mysql.Options) (*mysql.Pool, error) {
	opts.FoundRows = s.cfg.foundRows
	pool, err := mysql.NewPool(s.cfg.Config, opts, s.log)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pools = append(s.pools, pool)
	return pool, nil
}

// Work returns the pool for short statements.
func (s *Store) Work() *mysql.Pool { return s.work }

// Scan returns the pool for statements that may read much.
func (s *Store) Scan() *mysql.Pool { return s.scan }

// Close gives the connections back. No other method may be called afterwards.
func (s *Store) Close() error {
	var errs []error
	for _, pool := range s.pools {
		errs = append(errs, pool.Close())
	}
	return errors.Join(errs...)
}

// AcquireLock waits until the leader's lock of a source is had on the primary, or ctx ends.
func (s *Store) AcquireLock(ctx context.Context, source string) (*mysql.Lock, error) {
	return mysql.AcquireLock(ctx, s.cfg.Config, source, s.cfg.LockLease, s.log)
}

// LockHolder reports whether some session holds the leader's lock of a source, and which.
func (s *Store) LockHolder(ctx context.Context, source string) (held bool, holder string, err error) {
	return s.work.LockHolder(ctx, source)
}

// Tables returns the tables as they were found last.
func (s *Store) Tables() []Table {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.tables)
}

// Refresh finds the tables again: after DDL, or when a new shard may have been created. When it fails, the tables stay as
// they were.
func (s *Store) Refresh(ctx context.Context) error {
	var tables []Table
	var srv mysql.Server
	err := s.work.Run(ctx, "look at the tables", func(ctx context.Context, conn *sql.Conn) (err error) {
		if srv, err = mysql.ReadServer(ctx, conn); err != nil {
			return err
		}
		tables, err = resolve(ctx, conn, srv, s.cfg)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(tables, func(a, b Table) int { return strings.Compare(a.String(), b.String()) })
	byName := make(map[outbox.Table]*Table, len(tables))
	for i := range tables {
		byName[tables[i].Table] = &tables[i]
	}
	s.mu.Lock()
	before := s.byName
	s.tables, s.byName, s.server = tables, byName, srv
	s.mu.Unlock()
	for i := range tables {
		t := &tables[i]
		if old := before[t.Table]; t.due == "" && (old == nil || old.due != "") {
			s.log.Warn().Stringer("table", t.Table).Msg("no index on (status, next_retry_time): each sweep reads the whole table; outbox-relay init creates it")
		}
		if old := before[t.Table]; t.primary == "" && (old == nil || old.primary != "") {
			s.log.Warn().Stringer("table", t.Table).Msg("no unique index on the id: each mark reads the whole table; make the id the primary key")
		}
	}
	return nil
}

// table returns the description of a table, under any spelling that the server takes for the same.
func (s *Store) table(name outbox.Table) (*Table, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t, ok := s.byName[name]; ok {
		return t, nil
	}
	if s.server.FoldNames {
		for i := range s.tables {
			if t := &s.tables[i]; strings.EqualFold(t.Database, name.Database) && strings.EqualFold(t.Name, name.Name) {
				return t, nil
			}
		}
	}
	return nil, schemaError(ErrGone, "%s is none of the tables found for this source; it may have been renamed or dropped", name)
}

// Server returns what the server is and can do, as it was found last.
func (s *Store) Server() mysql.Server {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.server
}

// number returns the stored number of a status.
func (s *Store) number(status outbox.Status) int { return s.cfg.Statuses[status] }

// StatusOf returns the status that a stored number means.
func (s *Store) StatusOf(number int64) outbox.Status { return s.cfg.Statuses.Of(number) }

// open renders the guard's list: the statuses that the relay may move a row out of.
func (s *Store) open() string {
	return fmt.Sprintf("%d,%d", s.number(outbox.Pending), s.number(outbox.Failed))
}

// OnTable runs fn with the table's present description, and once more with a fresh one when the server says that the
// description is out of date.
func (s *Store) OnTable(ctx context.Context, p *mysql.Pool, op string, name outbox.Table, fn func(ctx context.Context, conn *sql.Conn, t *Table) error) error {
	attempt := func() error {
		t, err := s.table(name)
		if err != nil {
			return err
		}
		return p.Run(ctx, op+" "+name.String(), func(ctx context.Context, conn *sql.Conn) error { return fn(ctx, conn, t) })
	}
	err := attempt()
	var refused *mysql.Error
	// A table that is not known may be a new shard, or one that was renamed away and is back.
	if errors.Is(err, ErrGone) || errors.As(err, &refused) && refused.Number != 0 && errors.Is(err, ErrSchema) {
		again := s.Refresh(ctx)
		if again == nil {
			return attempt()
		}
		err = fmt.Errorf("%w (looking for the tables again: %s)", err, again.Error())
	}
	return err
}

// unlessGone drops the error of a table that is gone: nothing is in it, and it is no reason to leave out the others.
func unlessGone(err error) error {
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// Now returns the server's clock, as next_retry_time is compared with it.
func (s *Store) Now(ctx context.Context) (string, error) {
	var now string
	err := s.work.Run(ctx, "read the server's clock", func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT CAST(NOW() AS CHAR)").Scan(&now)
	})
	return now, err
}

// Offset returns how far the server's local time is ahead of UTC at this moment: DATETIME columns that were filled with
// NOW() minus the offset are UTC.
func (s *Store) Offset(ctx context.Context) (time.Duration, error) {
	var seconds int64
	err := s.work.Run(ctx, "read the server's time zone", func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())").Scan(&seconds)
	})
	return time.Duration(seconds) * time.Second, err
}
