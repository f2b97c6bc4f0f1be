package mysql

import (
	"context"
	"crypto/tls"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/rs/zerolog"
)

// Config says which server to connect to, and as whom.
type Config struct {
	// Addr is host:port, or the path of a socket.
	Addr           string
	User, Password string
	// TLS is nil for none. TLSOptional falls back to plain text when the server has no TLS ("preferred"), and makes up
	// an unverified TLS configuration when none is given.
	TLS         *tls.Config
	TLSOptional bool
}

// Time limits of the connections. A connection whose peer is gone is noticed by the read timeout when a statement is
// under way, and by the keep-alive probes (10 s + 3 x 5 s) while a long read waits.
const (
	dialTimeout  = 5 * time.Second
	writeTimeout = 10 * time.Second
	idleTimeout  = time.Minute
)

// connector makes connections whose sessions are prepared before anyone uses them. It may be used concurrently.
type connector struct {
	base  sqldriver.Connector
	setup []string
	tries []wish
	log   zerolog.Logger

	mu   sync.Mutex
	told []string // the refused wishes that the log has
}

// newConnector builds the connector for one pool.
func newConnector(cfg Config, opts Options, log zerolog.Logger) (*connector, error) {
	base, err := newDriver(cfg, opts, log)
	if err != nil {
		return nil, err
	}
	c := &connector{base: base, setup: append(Settings(), opts.Setup...), log: log, tries: []wish{rowFormat}}
	if opts.SmallImages {
		c.tries = append(c.tries, smallImages)
	}
	return c, nil
}

// newDriver builds what makes the bare connections.
func newDriver(cfg Config, opts Options, log zerolog.Logger) (sqldriver.Connector, error) {
	dsn := driver.NewConfig()
	dsn.User, dsn.Passwd, dsn.Addr = cfg.User, cfg.Password, cfg.Addr
	dsn.Net = "tcp"
	if strings.HasPrefix(cfg.Addr, "/") {
		dsn.Net = "unix"
	}
	dsn.Timeout, dsn.ReadTimeout, dsn.WriteTimeout = dialTimeout, opts.ReadTimeout, writeTimeout
	dsn.ClientFoundRows = opts.FoundRows
	dsn.Logger = driverLog{log}
	dsn.TLS, dsn.AllowFallbackToPlaintext = cfg.TLS, cfg.TLSOptional
	if cfg.TLSOptional && dsn.TLS == nil {
		// "preferred" protects against listeners only; whoever wants the server proved asks for verify-*.
		dsn.TLS = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
	}
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	dsn.DialFunc = dialer.DialContext
	if err := dsn.Apply(driver.Charset("utf8mb4", "")); err != nil {
		return nil, fmt.Errorf("prepare the connection: %w", err)
	}
	base, err := driver.NewConnector(dsn)
	if err != nil {
		// The driver's text may quote the DSN.
		return nil, errors.New("prepare the connection: the address, user or TLS settings are not usable")
	}
	return base, nil
}

// Driver implements driver.Connector.
func (c *connector) Driver() sqldriver.Driver { return c.base.Driver() }

// Connect implements driver.Connector: it connects and prepares the session.
func (c *connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := c.base.Connect(ctx)
	if err != nil {
		return nil, err
	}
	exec, ok := conn.(sqldriver.ExecerContext)
	if !ok {
		return nil, errors.Join(errors.New("the driver can't execute statements"), conn.Close())
	}
	if err := c.prepare(ctx, exec); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (c *connector) prepare(ctx context.Context, exec sqldriver.ExecerContext) error {
	for _, statement := range c.setup {
		if _, err := exec.ExecContext(ctx, statement, nil); err != nil {
			return err
		}
	}
	for _, w := range c.tries {
		if err := c.try(ctx, exec, w); err != nil {
			return err
		}
	}
	return nil
}

// try makes a wish. A refusal is logged once and lived with; any other error is the connection's.
func (c *connector) try(ctx context.Context, exec sqldriver.ExecerContext, w wish) error {
	_, err := exec.ExecContext(ctx, w.statement, nil)
	refused, ok := errors.AsType[*driver.MySQLError](err)
	if !ok {
		return err
	}
	if refused.Number == codeUnknownVariable {
		return nil // a server that lacks the setting does not need it
	}
	if w.unless != "" {
		right, err := holds(ctx, exec, w.unless)
		if right || err != nil {
			return err
		}
	}
	if c.first(w.refused) {
		c.log.Info().Uint16("number", refused.Number).Msg(w.refused)
	}
	return nil
}

// holds asks whether a condition in SQL is true of the session.
func holds(ctx context.Context, conn any, condition string) (bool, error) {
	q, ok := conn.(sqldriver.QueryerContext)
	if !ok {
		return false, errors.New("the driver can't ask questions")
	}
	rows, err := q.QueryContext(ctx, "SELECT 1 FROM DUAL WHERE "+condition, nil)
	if err != nil {
		return false, err
	}
	found := rows.Next(make([]sqldriver.Value, 1)) == nil
	return found, rows.Close()
}

// first reports whether a text was not asked for before.
func (c *connector) first(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.told, text) {
		return false
	}
	c.told = append(c.told, text)
	return true
}

// driverLog demotes the driver's own lines: each of them also comes back as an error, which is reported where it matters.
type driverLog struct{ log zerolog.Logger }

// Print implements the driver's Logger.
func (l driverLog) Print(v ...any) { l.log.Debug().Msg("driver: " + fmt.Sprint(v...)) }

// OpenService returns a pool of sessions as a service has them, which writes messages and business rows: nothing of what
// the relay sets in its own sessions is set. The demo writes through it. size bounds its connections; the caller closes it.
func OpenService(cfg Config, size int, log zerolog.Logger) (*sql.DB, error) {
	base, err := newDriver(cfg, Options{ReadTimeout: QuickRead}, log)
	if err != nil {
		return nil, err
	}
	return openDB(base, size), nil
}
