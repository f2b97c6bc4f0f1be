package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"
)

// How long a pool's statements may keep the server silent.
const (
	QuickRead = 20 * time.Second // short statements
	SlowRead  = 2 * time.Minute  // those that may read much
)

// Options says what a pool is for.
type Options struct {
	// Size is how many connections it may have at most.
	Size int
	// ReadTimeout bounds each wait for the server's next packet; zero means QuickRead.
	ReadTimeout time.Duration
	// SmallImages: write the key and the changed columns only to the binlog, where the server allows it.
	SmallImages bool
	// Setup are statements that prepare a session beyond what all have.
	Setup []string
	// Hasty: locks that others hold are an error at once, for callers with a loop of their own.
	Hasty bool
	// FoundRows is the driver's clientFoundRows: tests show that nothing depends on it.
	FoundRows bool
}

// Pool is a bounded set of prepared sessions, and the rule for trying again. Connections are made when they are needed and
// given up after a minute without use. Its methods may be called concurrently.
type Pool struct {
	db    *sql.DB
	size  int
	hasty bool // locks that others hold are not waited for again
}

// NewPool makes a pool that has not connected yet.
func NewPool(cfg Config, opts Options, log zerolog.Logger) (*Pool, error) {
	if opts.ReadTimeout == 0 {
		opts.ReadTimeout = QuickRead
	}
	c, err := newConnector(cfg, opts, log)
	if err != nil {
		return nil, err
	}
	return &Pool{db: openDB(c, opts.Size), size: opts.Size, hasty: opts.Hasty}, nil
}

// PoolOf makes a pool of connections that somebody else makes, for tests without a server.
func PoolOf(c sqldriver.Connector, size int) *Pool {
	return &Pool{db: openDB(c, size), size: size}
}

func openDB(c sqldriver.Connector, size int) *sql.DB {
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(idleTimeout)
	return db
}

// backoffs are the waits between the tries of one call.
var backoffs = [...]time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond, time.Second}

// Run calls fn with a session until it succeeds, fails for good, or the tries are spent: five for locks, two for a
// connection that turned out to be dead or a session that can't serve. fn must be idempotent: the outcome of a lost connection
// is unknown. The error says op, what was attempted, and matches a class.
func (p *Pool) Run(ctx context.Context, op string, fn func(ctx context.Context, conn *sql.Conn) error) error {
	for try := 0; ; try++ {
		err := describeIn(ctx, op, p.once(ctx, fn))
		if err == nil || ctx.Err() != nil || try >= len(backoffs) || !p.again(err, try) {
			return err
		}
		// Two that have locked each other out must not meet again.
		timer := time.NewTimer(time.Duration((0.5 + rand.Float64()) * float64(backoffs[try])))
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s: %w", op, ctx.Err())
		case <-timer.C:
		}
	}
}

// again reports whether to try once more after so many failures before this one.
func (p *Pool) again(err error, failures int) bool {
	if errors.Is(err, ErrBusy) {
		return !p.hasty
	}
	return failures == 0 && (errors.Is(err, ErrUnreachable) || errors.Is(err, errFormat))
}

func (p *Pool) once(ctx context.Context, fn func(ctx context.Context, conn *sql.Conn) error) (err error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if spoilt(err) {
			discard(conn)
			p.dropIdle()
		}
		if closing := conn.Close(); err == nil && closing != nil && !errors.Is(closing, sql.ErrConnDone) {
			err = closing
		}
	}()
	return fn(ctx, conn)
}

// spoilt reports whether an error is the session's, and most likely that of the ones beside it: the server behind them is no
// longer the primary, or they were made while binlog_format was STATEMENT.
func spoilt(err error) bool {
	err = Describe("", err)
	return errors.Is(err, ErrReadOnly) || errors.Is(err, errFormat)
}

// dropIdle ends the sessions that nobody uses.
func (p *Pool) dropIdle() {
	p.db.SetMaxIdleConns(0)
	p.db.SetMaxIdleConns(p.size)
}

// discard makes the pool drop the session instead of keeping it.
func discard(conn *sql.Conn) {
	// The returned ErrBadConn is the way to tell database/sql; it comes back as the result and says nothing new.
	_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn })
}

// Close gives the connections back. No other method may be called afterwards.
func (p *Pool) Close() error {
	if err := p.db.Close(); err != nil {
		return Describe("close the connections", err)
	}
	return nil
}

// Transact runs fn inside a transaction of the session.
func Transact(ctx context.Context, conn *sql.Conn, fn func(tx *sql.Tx) error) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		// A rollback that fails means that the connection is gone, and with it the transaction.
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}
