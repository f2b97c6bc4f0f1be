// Package desk is what an operator can ask for and do, beside running a relay: it reads, decides, says what would follow
// and does it. Commands show what it returns, and so can anything else: results are plain values with the JSON that
// commands print. It neither prints nor knows flags or exit codes.
package desk

import (
	"context"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/store"
)

// Scope is the source that an operator works on, with the configuration that says how its servers are reached. It holds no
// connection and may be used concurrently.
type Scope struct {
	Config *config.Config
	Source config.Source
	Log    zerolog.Logger
}

// UsageError says that what was asked for can't be done with this configuration, whatever the servers say. Nothing was
// touched.
type UsageError struct{ err error }

// Error returns the reason's text.
func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *UsageError) Unwrap() error { return e.err }

// Unusable makes a reason a UsageError.
func Unusable(reason error) error { return &UsageError{reason} }

// Rows connects to the primary and finds the source's tables. Whoever opens them closes them.
func (s *Scope) Rows(ctx context.Context) (*store.Store, error) {
	cfg, err := wire.Primary(s.Config, s.Source)
	if err != nil {
		return nil, Unusable(err)
	}
	return store.Open(ctx, cfg, s.Log)
}

// Checkpoints returns the client of Redis, which connects when it is first used. Whoever opens it closes it.
func (s *Scope) Checkpoints() (*checkpoint.Store, error) {
	cfg, err := wire.Redis(s.Config)
	if err != nil {
		return nil, Unusable(err)
	}
	opened, err := checkpoint.Open(cfg, s.Log)
	if err != nil {
		return nil, Unusable(err)
	}
	return opened, nil
}
