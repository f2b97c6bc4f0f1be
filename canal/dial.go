package canal

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
)

// errClosed is returned by a Reader that was closed.
var errClosed = errors.New("binlog reader is closed")

// dialTimeout bounds the making of a connection.
func dialTimeout(cfg Config) time.Duration { return min(cfg.ReadTimeout, 10*time.Second) }

// connectRaw makes a connection that speaks the protocol of replication. The dialer closes it, also from another
// goroutine.
func connectRaw(ctx context.Context, cfg Config, settings *tls.Config, dialer *rawDialer) (*client.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout(cfg))
	defer cancel()
	// The handshake does not look at the context.
	stop := context.AfterFunc(ctx, dialer.close)
	defer stop()
	return client.ConnectWithDialer(ctx, "", cfg.Addr, cfg.User, cfg.Password, "", dialer.dial,
		func(c *client.Conn) error {
			c.SetTLSConfig(settings)
			c.ReadTimeout, c.WriteTimeout = cfg.ReadTimeout, cfg.ReadTimeout
			return nil
		})
}

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

// dialedConn is a connection that takes deadlines also after it was closed. go-mysql's syncer sets one when it is
// closed, and where that fails it closes its packet reader at once, while its goroutine may still read from it: a
// data race.
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
