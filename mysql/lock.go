package mysql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// lockPrefix keeps the relay's locks apart from the ones of others: GET_LOCK's names are the whole server's.
const lockPrefix = "outbox-relay:"

// maxLockName is the longest name that MySQL takes.
const maxLockName = 64

// lockName returns the server's name for a source's lock. A long one is cut and told apart by a hash.
func lockName(source string) string {
	name := lockPrefix + source
	if len(name) <= maxLockName {
		return name
	}
	sum := sha256.Sum256([]byte(source))
	return name[:maxLockName-17] + "-" + hex.EncodeToString(sum[:8])
}

// Lock is the leadership of a source, held as a GET_LOCK in a session of its own. The server frees it when that session
// ends or has been silent for the lease. It serves efficiency only: a holder that was stopped for a while may believe in it
// for a moment longer, and what it writes then must be fenced by other means.
type Lock struct {
	name string
	db   *sql.DB
	conn *sql.Conn
	log  zerolog.Logger

	lease time.Duration

	mu      sync.Mutex
	renewed time.Time // when the last successful ping, or the lock itself, was asked for

	lost   chan struct{}
	stop   chan struct{}
	done   chan struct{}
	ending sync.Once
}

// AcquireLock waits until the lock of a source is had, or ctx ends. A lost connection is made anew while waiting. The server
// frees the lock when it has heard nothing for the lease.
func AcquireLock(ctx context.Context, cfg Config, source string, lease time.Duration, log zerolog.Logger) (*Lock, error) {
	// The server counts whole seconds; a shorter silence than two would be cut by an ordinary hiccup.
	silence := fmt.Sprintf("SET SESSION wait_timeout=%d", max(2, int(lease/time.Second)))
	base, err := newConnector(cfg, Options{ReadTimeout: QuickRead, Setup: []string{silence}}, log)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(base)
	db.SetMaxOpenConns(1)
	l := &Lock{name: lockName(source), db: db, log: log, lost: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{})}
	if err := l.acquire(ctx); err != nil {
		return nil, errors.Join(Describe("wait for the lock of "+source, err), db.Close())
	}
	l.lease = lease
	// The lock outlives the waiting for it: it ends by Release, or by being lost.
	go l.keep(context.WithoutCancel(ctx), lease)
	return l, nil
}

// acquire asks again and again with a short wait each, so that a dead server is noticed while waiting too.
func (l *Lock) acquire(ctx context.Context) error {
	for try := 0; ; try++ {
		got, err := l.ask(ctx)
		if got {
			return nil
		}
		if err != nil && (ctx.Err() != nil || !Retryable(describeIn(ctx, "", err))) {
			return err
		}
		if err == nil {
			try = -1
			continue
		}
		timer := time.NewTimer(backoffs[min(try, len(backoffs)-1)])
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

func (l *Lock) ask(ctx context.Context) (bool, error) {
	if l.conn == nil {
		conn, err := l.db.Conn(ctx)
		if err != nil {
			return false, err
		}
		l.conn = conn
	}
	var got sql.NullInt64
	err := l.conn.QueryRowContext(ctx, "SELECT GET_LOCK("+Literal(l.name)+", 2)").Scan(&got)
	l.renew(time.Now())
	if err != nil {
		discard(l.conn)
		_ = l.conn.Close() // it is discarded already
		l.conn = nil
		return false, err
	}
	if !got.Valid {
		return false, &Error{Op: "wait for the lock", Class: ErrBusy, Text: "the wait was interrupted"}
	}
	return got.Int64 == 1, nil
}

// keep pings the session three times in a lease and closes lost at the first doubt: before the server's own timeout
// frees the lock, because the last ping that arrived is at most two thirds of a lease old by then.
func (l *Lock) keep(ctx context.Context, lease time.Duration) {
	defer close(l.done)
	ticker := time.NewTicker(lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		}
		if err := l.ping(ctx, lease/3); err != nil {
			l.log.Warn().Err(err).Msg("leadership lost")
			close(l.lost)
			discard(l.conn)
			return
		}
	}
}

var errNotHeld = errors.New("another session holds the lock")

func (l *Lock) ping(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	asked := time.Now()
	var mine sql.NullBool
	if err := l.conn.QueryRowContext(ctx, "SELECT IS_USED_LOCK("+Literal(l.name)+")=CONNECTION_ID()").Scan(&mine); err != nil {
		return Describe("keep the leader's lock", err)
	}
	if !mine.Bool {
		return errNotHeld
	}
	l.renew(asked)
	return nil
}

func (l *Lock) renew(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = at
}

// Valid reports whether the lock is surely still ours, by the clock alone: the server frees it when it has heard nothing
// for the lease. It notices a process that was stopped and continued before Lost can. The longer of what the monotonic and
// the wall clock say counts: one stands still while a machine is suspended, the other may be set back.
func (l *Lock) Valid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	return max(now.Sub(l.renewed), now.Round(0).Sub(l.renewed.Round(0))) < l.lease
}

// Lost is closed when the lock can no longer be believed in. It is not closed by Release.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// Release gives the lock back and ends its session. It may be called more than once, and after the lock was lost.
func (l *Lock) Release(ctx context.Context) error {
	var errs []error
	l.ending.Do(func() {
		close(l.stop)
		<-l.done
		select {
		case <-l.lost: // nothing to give back
		default:
			if _, err := l.conn.ExecContext(ctx, "DO RELEASE_LOCK("+Literal(l.name)+")"); err != nil {
				errs = append(errs, Describe("release the leader's lock", err))
			}
		}
		if err := l.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
			errs = append(errs, Describe("end the lock's session", err))
		}
		if err := l.db.Close(); err != nil {
			errs = append(errs, Describe("end the lock's session", err))
		}
	})
	return errors.Join(errs...)
}

// LockHolder reports whether some session holds the lock of a source, and which: host:port as the server sees it, or the
// connection's number when the user may not see others' sessions.
func (p *Pool) LockHolder(ctx context.Context, source string) (held bool, holder string, err error) {
	err = p.Run(ctx, "look at the lock of "+source, func(ctx context.Context, conn *sql.Conn) error {
		var id sql.NullInt64
		if err := conn.QueryRowContext(ctx, "SELECT IS_USED_LOCK("+Literal(lockName(source))+")").Scan(&id); err != nil {
			return err
		}
		if held = id.Valid; !held {
			return nil
		}
		holder = fmt.Sprintf("connection %d", id.Int64)
		var host string
		err := conn.QueryRowContext(ctx, fmt.Sprintf("SELECT HOST FROM information_schema.PROCESSLIST WHERE ID=%d", id.Int64)).Scan(&host)
		if err == nil {
			holder += " from " + host
		}
		// Where it comes from is only said if it can be: MySQL refuses the whole list of sessions with error 3854 while any of
		// them runs a statement with characters beyond the BMP.
		if Code(Describe("", err)) != 0 || errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return held, holder, err
}
