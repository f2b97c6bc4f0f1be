package store

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/rs/zerolog"
)

// Time limits of the connections. A connection whose peer is gone is noticed by the read timeout when a statement is
// under way, and by the keep-alive probes (10 s + 3 x 5 s) while a long read waits.
const (
	dialTimeout      = 5 * time.Second
	writeTimeout     = 10 * time.Second
	quickReadTimeout = 20 * time.Second
	slowReadTimeout  = 2 * time.Minute
	idleTimeout      = time.Minute
)

// sessionSQL prepares each session. The time zone is deliberately left alone: everything is compared and written with
// the server's NOW() in the server's own zone, as other clients of the table see it. sql_mode is empty so that a zero or
// partial date which is already in a row never fails our UPDATE of its other columns, and so that quoting is known.
var sessionSQL = []string{
	"SET SESSION sql_mode='', autocommit=1, innodb_lock_wait_timeout=3, lock_wait_timeout=10, net_write_timeout=30, wait_timeout=600",
	"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
}

// connector makes connections whose sessions are prepared before anyone uses them.
type connector struct {
	base    driver.Connector
	setup   []string
	minimal bool // try binlog_row_image=MINIMAL
	log     zerolog.Logger
	told    *sync.Once
}

// newConnector builds the connector for one pool. readTimeout bounds each wait for the server's next packet.
func newConnector(cfg Config, readTimeout time.Duration, minimal bool, log zerolog.Logger) (*connector, error) {
	dsn := mysql.NewConfig()
	dsn.User, dsn.Passwd, dsn.Addr = cfg.User, cfg.Password, cfg.Addr
	dsn.Net = "tcp"
	if strings.HasPrefix(cfg.Addr, "/") {
		dsn.Net = "unix"
	}
	dsn.Timeout, dsn.ReadTimeout, dsn.WriteTimeout = dialTimeout, readTimeout, writeTimeout
	dsn.ClientFoundRows = cfg.foundRows
	dsn.Logger = driverLog{log}
	dsn.TLS, dsn.AllowFallbackToPlaintext = cfg.TLS, cfg.TLSOptional
	if cfg.TLSOptional && dsn.TLS == nil {
		// "preferred" protects against listeners only; whoever wants the server proved asks for verify-*.
		dsn.TLS = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
	}
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	dsn.DialFunc = dialer.DialContext
	if err := dsn.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, fmt.Errorf("prepare the connection: %w", err)
	}
	base, err := mysql.NewConnector(dsn)
	if err != nil {
		// The driver's text may quote the DSN.
		return nil, errors.New("prepare the connection: the address, user or TLS settings are not usable")
	}
	return &connector{base: base, setup: sessionSQL, minimal: minimal, log: log, told: new(sync.Once)}, nil
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return c.base.Driver() }

// Connect implements driver.Connector: it connects and prepares the session.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.base.Connect(ctx)
	if err != nil {
		return nil, err
	}
	exec, ok := conn.(driver.ExecerContext)
	if !ok {
		return nil, errors.Join(errors.New("the driver can't execute statements"), conn.Close())
	}
	for _, statement := range c.setup {
		if _, err := exec.ExecContext(ctx, statement, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	if c.minimal {
		if err := c.shrinkRowImages(ctx, exec); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// shrinkRowImages asks for marks that write only the key and the changed columns to the binlog. It takes a privilege
// that the relay can do without, so a refusal is told once and lived with.
func (c *connector) shrinkRowImages(ctx context.Context, exec driver.ExecerContext) error {
	_, err := exec.ExecContext(ctx, "SET SESSION binlog_row_image=MINIMAL", nil)
	if refused, ok := errors.AsType[*mysql.MySQLError](err); ok {
		c.told.Do(func() {
			c.log.Info().Uint16("number", refused.Number).
				Msg("marks write full row images to the binlog; grant SESSION_VARIABLES_ADMIN (MariaDB: BINLOG ADMIN) to make them small")
		})
		return nil
	}
	return err
}

// driverLog demotes the driver's own lines: each of them also comes back as an error, which is told where it matters.
type driverLog struct{ log zerolog.Logger }

// Print implements mysql.Logger.
func (l driverLog) Print(v ...any) { l.log.Debug().Msg("driver: " + fmt.Sprint(v...)) }

// pool is a bounded set of prepared sessions, and the rule for trying again.
type pool struct {
	db    *sql.DB
	tries int // at most for one call
}

func newPool(c driver.Connector, size int) *pool {
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(idleTimeout)
	return &pool{db: db, tries: len(backoffs) + 1}
}

// backoffs are the waits between the tries of one call.
var backoffs = [...]time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond, time.Second}

// run calls fn with a session until it succeeds, fails for good, or the tries are spent: five for locks, two for a
// connection that turned out to be dead. fn must be idempotent: the outcome of a lost connection is unknown.
func (p *pool) run(ctx context.Context, op string, fn func(ctx context.Context, conn *sql.Conn) error) error {
	for try := 0; ; try++ {
		err := describe(op, p.once(ctx, fn))
		if err == nil || ctx.Err() != nil || try+1 >= p.tries {
			return err
		}
		if !errors.Is(err, ErrBusy) && (try > 0 || !errors.Is(err, ErrUnreachable)) {
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

func (p *pool) once(ctx context.Context, fn func(ctx context.Context, conn *sql.Conn) error) (err error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if errors.Is(describe("", err), ErrReadOnly) {
			discard(conn)
		}
		if closing := conn.Close(); err == nil && closing != nil && !errors.Is(closing, sql.ErrConnDone) {
			err = closing
		}
	}()
	return fn(ctx, conn)
}

// discard makes the pool drop the session instead of keeping it: the server behind it is no longer the primary.
func discard(conn *sql.Conn) {
	// The returned ErrBadConn is the way to tell database/sql; it comes back as the result and says nothing new.
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}

func (p *pool) close() error {
	if err := p.db.Close(); err != nil {
		return describe("close the connections", err)
	}
	return nil
}

// transact runs fn inside a transaction of the session.
func transact(ctx context.Context, conn *sql.Conn, fn func(tx *sql.Tx) error) error {
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
