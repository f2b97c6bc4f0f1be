package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// dialer makes a sarama client's connections and can cut them all for good. sarama has no way to be abandoned: its
// AsyncClose waits until each message has used up its retries, which takes minutes with the brokers away. After Cut
// every connection is broken, every new one refused and every backoff over at once, so that it gives up within
// milliseconds.
type dialer struct {
	timeout time.Duration
	done    chan struct{} // closed by Cut

	mu    sync.Mutex
	cut   bool
	conns []*net.TCPConn
}

var errCut = errors.New("kafka: connections were cut, the client is closing")

func newDialer(timeout time.Duration) *dialer {
	return &dialer{timeout: timeout, done: make(chan struct{})}
}

// Dial connects, unless and until the dialer is cut. sarama gives it no context.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.timeout)
	defer cancel()
	go func() {
		select {
		case <-d.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	// sarama looks for a *net.TCPConn to see whether a connection is still sound, so it is not wrapped.
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("connect to %s: not a TCP connection", address), conn.Close())
	}
	return tcp, d.keep(tcp)
}

func (d *dialer) keep(conn *net.TCPConn) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut {
		return errors.Join(errCut, conn.Close())
	}
	d.conns = slices.DeleteFunc(d.conns, isClosed)
	d.conns = append(d.conns, conn)
	return nil
}

// isClosed knows a connection that sarama has closed by its descriptor, which is gone.
func isClosed(conn *net.TCPConn) bool {
	raw, err := conn.SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}

// Cut breaks everything. It may be called more than once.
func (d *dialer) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut {
		return
	}
	d.cut = true
	close(d.done)
	for _, conn := range d.conns {
		// The socket is of no further use to anybody; sarama sees the error of its own read.
		_ = conn.Close()
	}
	d.conns = nil
}

// isCut reports whether Cut was called.
func (d *dialer) isCut() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// pause waits for a while and reports whether it did: false when the dialer was cut.
func (d *dialer) pause(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.done:
		return false
	}
}

// backoff is sarama's Retry.BackoffFunc. It waits itself and returns nothing to wait for, since sarama's wait would
// not end by Cut.
func (d *dialer) backoff(attempt, _ int) time.Duration {
	d.pause(backoffFor(attempt))
	return 0
}

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is no host:port", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
		return fmt.Errorf("%q is no host:port", address)
	}
	return nil
}
