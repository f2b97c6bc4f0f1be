// Package console is the relay's HTTP server: health for supervisors, metrics for Prometheus, state for people.
//
// It guarantees that a slow or hostile client costs no more than its connection, that /livez never depends on a
// database, a broker or Redis, and that with a token nothing but the bare health is told without it. What is healthy
// is decided by the sources.
package console

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Bounds of what one client may take.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = time.Minute
	maxHeaderBytes    = 16 << 10
)

// Config says where the console listens and who may look.
type Config struct {
	Listen  string // host:port; "" switches the console off
	Token   string // bearer token for everything but /livez and /readyz; "" asks for none
	Prefix  string // path before every page, such as /relay; "" none
	Version string // told by /api/v1/status
}

// Source is one relayed source, as the console sees it. All methods may be called concurrently and must answer at once,
// from memory.
type Source interface {
	// Name is the configured name.
	Name() string
	// Live returns an error when the source's own loops have stopped ticking, never because a dependency is away.
	Live() error
	// Ready returns what is needed to do the work: leading and connected, or standing by.
	Ready() []Check
	// Status returns the state for /api/v1/status, as something that encoding/json takes. No secrets, no payloads.
	Status() any
}

// Check is one condition of readiness.
type Check struct {
	Name   string
	Err    error  // nil when the condition holds
	Detail string // what a person wants to know beside it
	// Degraded tells that the source still does its work although Err is set: it is shown, but does not make it unready.
	Degraded bool
}

// Console serves HTTP from Start to Close.
type Console struct {
	cfg     Config
	metrics http.Handler
	sources []Source
	started time.Time
	log     zerolog.Logger
	server  *http.Server

	mu      sync.Mutex
	address string        // where it listens, "" when it does not
	done    chan struct{} // closed when serving has ended; nil when it never began
}

// New returns a console that shows the sources and the metrics handler's scrape. It listens only after Start.
func New(cfg Config, metrics http.Handler, sources []Source, logger zerolog.Logger) *Console {
	c := &Console{
		cfg: cfg, metrics: metrics, sources: sources, started: time.Now(),
		log: logger.With().Str("component", "console").Logger(),
	}
	c.server = &http.Server{
		Handler:           c.Handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(serverLog{c.log}, "", 0), //nolint:forbidigo // net/http takes no other kind of logger
	}
	return c
}

// Start begins to listen and returns; serving goes on until Close. With no address to listen on it does nothing.
func (c *Console) Start(ctx context.Context) error {
	if c.cfg.Listen == "" {
		c.log.Info().Msg("console is switched off")
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil {
		return errors.New("start console: it runs already")
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", c.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for the console: %w; free the port or change console.listen", err)
	}
	c.address = listener.Addr().String()
	c.done = make(chan struct{})
	c.announce(c.address)
	go c.serve(listener, c.done)
	return nil
}

// Close stops listening, lets requests end until ctx does, then cuts them off, and returns when no goroutine is left.
// It may be called more than once, and without Start.
func (c *Console) Close(ctx context.Context) error {
	c.mu.Lock()
	done := c.done
	c.mu.Unlock()
	err := c.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("close console: %w", err), c.server.Close())
	}
	if done != nil {
		<-done // Shutdown and Close both make Serve return
	}
	return err
}

func (c *Console) serve(listener net.Listener, done chan<- struct{}) {
	defer close(done)
	if err := c.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		c.log.Error().Err(err).Msg("console has stopped serving")
	}
}

func (c *Console) announce(address string) {
	c.log.Info().Str("address", address).Msg("console listens")
	if c.cfg.Token == "" && !loopback(address) {
		c.log.Warn().Str("address", address).
			Msg("metrics and API are open to the network without a token: set console.token or listen on 127.0.0.1")
	}
}

// loopback reports whether only this machine can reach a listener's address.
func loopback(address string) bool {
	parsed, err := netip.ParseAddrPort(address)
	return err == nil && parsed.Addr().Unmap().IsLoopback()
}
