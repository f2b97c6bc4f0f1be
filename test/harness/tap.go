package harness

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// Tap is a TCP proxy that can stop a connection in the middle of what it carries, or swallow everything on it, without a
// word to either end. Toxiproxy does that to all connections of a proxy; a tap chooses.
type Tap struct {
	// Addr is where clients connect to.
	Addr string

	t        testing.TB
	upstream string
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	links  map[*link]struct{}
	budget int64         // bytes to a client after which its connection is held; 0: none is
	held   chan struct{} // closed once one is
	free   chan struct{} // closed when those held may go on
	ended  bool
}

// link is one connection through a tap.
type link struct {
	client, server net.Conn
	port           int // of the proxy's side, as the server sees it

	mu      sync.Mutex
	down    int64 // bytes to the client since the tap was armed
	swallow bool
}

// NewTap listens until the test ends.
func NewTap(t testing.TB, upstream string) *Tap {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Tap{Addr: listener.Addr().String(), t: t, upstream: upstream, listener: listener, links: make(map[*link]struct{})}
	ctx := context.WithoutCancel(t.Context())
	p.work.Go(func() { p.accept(ctx) })
	t.Cleanup(p.close)
	return p
}

// HoldAfter stops the first connection that brings its client so many bytes from now on. The returned channel is closed
// when it stands.
func (p *Tap) HoldAfter(bytes int64) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget, p.held, p.free = bytes, make(chan struct{}), make(chan struct{})
	for l := range p.links {
		l.mu.Lock()
		l.down = 0
		l.mu.Unlock()
	}
	return p.held
}

// Release lets what is held go on, and holds nothing any more.
func (p *Tap) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release()
}

// release is Release for a caller who holds mu.
func (p *Tap) release() {
	if p.budget > 0 {
		p.budget = 0
		close(p.free)
	}
}

// Swallow loses everything on the connection that the server sees coming from this port, and leaves it open at both ends.
func (p *Tap) Swallow(port int) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.port == port {
			l.mu.Lock()
			l.swallow = true
			l.mu.Unlock()
			return
		}
	}
	p.t.Fatalf("no connection through the tap comes from port %d", port)
}

func (p *Tap) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		var dialer net.Dialer
		server, err := dialer.DialContext(ctx, "tcp", p.upstream)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server}
		if addr, ok := server.LocalAddr().(*net.TCPAddr); ok {
			l.port = addr.Port
		}
		p.mu.Lock()
		if p.ended {
			l.close()
		}
		p.links[l] = struct{}{}
		p.mu.Unlock()
		p.work.Go(func() { p.carry(l, server, client, false) })
		p.work.Go(func() { p.carry(l, client, server, true) })
	}
}

// carry copies one direction to its end, which is the other's too, but for a connection whose bytes are swallowed: that
// stays open until the tap ends.
func (p *Tap) carry(l *link, to io.Writer, from io.Reader, down bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !l.swallows() {
			if down {
				p.hold(l, int64(n))
			}
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = errors.Join(err, failed)
			}
		}
		if err != nil {
			break
		}
	}
	if !l.swallows() {
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
		l.close()
	}
}

// hold waits when a connection has used up what it may bring.
func (p *Tap) hold(l *link, n int64) {
	p.mu.Lock()
	budget, held, free := p.budget, p.held, p.free
	p.mu.Unlock()
	if budget == 0 {
		return
	}
	l.mu.Lock()
	l.down += n
	over := l.down > budget
	l.mu.Unlock()
	if !over {
		return
	}
	p.mu.Lock()
	select {
	case <-held:
	default:
		close(held)
	}
	p.mu.Unlock()
	<-free
}

func (l *link) swallows() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.swallow
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// close ends everything and waits for it.
func (p *Tap) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.ended = true
	p.release()
	for l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.work.Wait()
}
