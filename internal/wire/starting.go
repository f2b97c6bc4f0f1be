package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/relay"
)

// Starting is a source's relay from when it is wanted on. Until its primary has been reached for the first time there is
// nothing to build a relay from; meanwhile it lives, is not ready, and says so. So one source whose server is away holds
// up neither the others nor the console.
type Starting struct {
	name string
	open func(ctx context.Context) (*Source, error)

	mu     sync.Mutex
	source *Source // nil until it was opened
}

// Start returns the relay of a source, which Run opens.
func Start(c *config.Config, s config.Source, m *metrics.Registry, log zerolog.Logger) *Starting {
	return &Starting{name: s.Name, open: func(ctx context.Context) (*Source, error) { return Open(ctx, c, s, m, log) }}
}

// Run opens the source, waiting for its primary, and relays until ctx ends or it can't go on.
func (s *Starting) Run(ctx context.Context) error {
	source, err := s.open(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil //nolint:nilerr // stopped while waiting
	case err != nil:
		return fmt.Errorf("source %s: %w", s.name, err)
	}
	s.mu.Lock()
	s.source = source
	s.mu.Unlock()
	if err := source.Run(ctx); err != nil {
		return fmt.Errorf("source %s: %w", s.name, err)
	}
	return nil
}

// Close closes the connections, after Run has returned.
func (s *Starting) Close() error {
	if source := s.opened(); source != nil {
		return source.Close()
	}
	return nil
}

func (s *Starting) opened() *Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source
}

// errWaiting is why a source that was not opened yet is not ready.
var errWaiting = errors.New("waiting for the primary; the log says why")

// Name returns the source's name.
func (s *Starting) Name() string { return s.name }

// Live returns an error when the relay's own loops have stopped. Waiting for a server is no such thing.
func (s *Starting) Live() error {
	if source := s.opened(); source != nil {
		return source.Live()
	}
	return nil
}

// Ready returns what the relay needs.
func (s *Starting) Ready() []relay.Check {
	if source := s.opened(); source != nil {
		return source.Ready()
	}
	return []relay.Check{{Name: "primary", Err: errWaiting}}
}

// Status returns the relay's state.
func (s *Starting) Status() relay.Status {
	if source := s.opened(); source != nil {
		return source.Status()
	}
	return relay.Status{Source: s.name, Role: relay.RoleStarting, Errors: []string{errWaiting.Error()}}
}
