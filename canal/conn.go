package canal

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// querier runs one statement; conn is the real one.
type querier interface {
	query(ctx context.Context, statement string, args ...any) (*mysql.Result, error)
}

// conn is the connection for metadata: one, replaced when it breaks, for one statement at a time.
type conn struct {
	cfg Config

	// mu guards what follows, and is held while a statement runs.
	mu     sync.Mutex
	client *client.Conn
	plain  bool // the server offers no TLS, and TLS is optional

	// rawMu guards what follows; it is never held while waiting, so that close can interrupt a statement. It is taken
	// after mu.
	rawMu  sync.Mutex
	dialer *rawDialer
	closed bool
}

// errClosed is returned by a Reader that was closed.
var errClosed = errors.New("binlog reader is closed")

// dialTimeout bounds the making of a connection.
func dialTimeout(cfg Config) time.Duration { return min(cfg.ReadTimeout, 10*time.Second) }

// query runs a statement. A connection that turns out to be broken is replaced once, since it may have been idle for long.
func (c *conn) query(ctx context.Context, statement string, args ...any) (*mysql.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		fresh := c.client == nil
		if fresh {
			if err := c.dial(ctx); err != nil {
				return nil, err
			}
		}
		result, err := c.execute(ctx, statement, args)
		if err == nil {
			return result, nil
		}
		if c.isClosed() {
			return nil, errClosed
		}
		broken := serverCode(err) == 0
		if broken || serverCode(err) == codeServerShutdown || serverCode(err) == codeConnectionKilled {
			c.drop()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !broken || fresh {
			return nil, strip(err)
		}
	}
}

// execute runs a statement on the connection; when ctx ends first, the connection is closed, there is no other way to
// stop waiting.
func (c *conn) execute(ctx context.Context, statement string, args []any) (*mysql.Result, error) {
	stop := context.AfterFunc(ctx, c.interrupt)
	defer stop()
	return c.client.Execute(statement, args...)
}

// dial connects, if TLS is optional also to a server without it.
func (c *conn) dial(ctx context.Context) error {
	err := c.dialOnce(ctx)
	if err != nil && c.cfg.TLSOptional && !c.plain && noTLS(err) {
		c.plain = true
		err = c.dialOnce(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("connect to %s: %w", c.cfg.Addr, strip(err))
	}
	return nil
}

func (c *conn) dialOnce(ctx context.Context) error {
	dialer := &rawDialer{}
	c.rawMu.Lock()
	c.dialer = dialer
	closed := c.closed
	c.rawMu.Unlock()
	if closed {
		return errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout(c.cfg))
	defer cancel()
	// The handshake does not look at the context.
	stop := context.AfterFunc(ctx, dialer.close)
	defer stop()
	connection, err := client.ConnectWithDialer(ctx, "", c.cfg.Addr, c.cfg.User, c.cfg.Password, "", dialer.dial,
		func(cl *client.Conn) error {
			cl.SetTLSConfig(c.tls())
			cl.ReadTimeout, cl.WriteTimeout = c.cfg.ReadTimeout, c.cfg.ReadTimeout
			return nil
		})
	if err != nil {
		return err
	}
	c.client = connection
	// Times are compared with those of the decoder, which prints TIMESTAMP in UTC.
	if _, err := c.client.Execute("SET SESSION time_zone = '+00:00'"); err != nil {
		c.drop()
		return err
	}
	return nil
}

// tls returns the TLS settings to connect with. The caller holds mu.
func (c *conn) tls() *tls.Config {
	if c.plain {
		return nil
	}
	return c.cfg.TLS
}

// streamTLS returns the TLS settings for the other connections.
func (c *conn) streamTLS() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tls()
}

// drop gives the connection up. The caller holds mu.
func (c *conn) drop() {
	c.interrupt()
	c.client = nil
}

// interrupt closes the connection below a statement that may be running.
func (c *conn) interrupt() {
	c.rawMu.Lock()
	defer c.rawMu.Unlock()
	if c.dialer != nil {
		c.dialer.close()
	}
}

// close ends the connection for good, also under a statement that runs.
func (c *conn) close() {
	c.rawMu.Lock()
	c.closed = true
	c.rawMu.Unlock()
	c.interrupt()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
}

func (c *conn) isClosed() bool {
	c.rawMu.Lock()
	defer c.rawMu.Unlock()
	return c.closed
}

// noTLS recognises the client library's refusal of a server that offers no TLS. The library has no type for it.
func noTLS(err error) bool { return strings.Contains(err.Error(), "does not support TLS") }

// rawDialer dials and remembers the connection below TLS and the protocol, to close it from another goroutine.
type rawDialer struct {
	mu     sync.Mutex
	conn   net.Conn
	closed bool
}

func (d *rawDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.Join(errClosed, conn.Close())
	}
	d.conn = conn
	return &dialedConn{Conn: conn, dialer: d}, nil
}

// dialedConn is a connection that takes deadlines also after it was closed. go-mysql's syncer sets one when it is closed, and where
// that fails it closes its packet reader at once, while its goroutine may still read from it: a data race.
type dialedConn struct {
	net.Conn
	dialer *rawDialer
}

// SetReadDeadline does nothing on a connection that the dialer has closed: reads fail already.
func (c *dialedConn) SetReadDeadline(t time.Time) error {
	err := c.Conn.SetReadDeadline(t)
	if err != nil && c.dialer.isClosed() {
		return nil
	}
	return err
}

func (d *rawDialer) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// close closes the connection and refuses to dial another.
func (d *rawDialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.conn != nil {
		_ = d.conn.Close() // what matters is that the reader wakes
	}
}
