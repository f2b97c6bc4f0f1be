package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/store"
)

// load reads the configuration and writes its warnings to the log.
func (a *app) load() (*config.Config, error) {
	res, err := config.Load(config.Input{File: a.flags.config, Sets: a.flags.sets, Environ: a.environ})
	if err != nil {
		return nil, exit(ExitUsage, err)
	}
	log := a.logger(res.Config)
	if a.streams.Libraries != nil {
		a.streams.Libraries(log)
	}
	for _, warning := range res.Warnings {
		log.Warn().Msg(warning)
	}
	return res.Config, nil
}

// sources returns the sources that a command works on: the named one, or all.
func (a *app) sources(c *config.Config) ([]config.Source, error) {
	if a.flags.source == "" {
		return c.Sources, nil
	}
	s, err := c.Source(a.flags.source)
	if err != nil {
		return nil, exit(ExitUsage, err)
	}
	return []config.Source{s}, nil
}

// scope is what a command for one source works with.
type scope struct {
	config *config.Config
	source config.Source
	log    zerolog.Logger
}

// scope reads the configuration and chooses the source.
func (a *app) scope() (*scope, error) {
	c, err := a.load()
	if err != nil {
		return nil, err
	}
	s, err := c.Source(a.flags.source)
	if err != nil {
		return nil, exit(ExitUsage, err)
	}
	return &scope{config: c, source: s, log: a.quiet(c)}, nil
}

// rows opens the tables.
func (s *scope) rows(ctx context.Context) (*store.Store, error) {
	cfg, err := wire.Primary(s.config, s.source)
	if err != nil {
		return nil, exit(ExitUsage, err)
	}
	return store.Open(ctx, cfg, s.log)
}

// checkpoints opens Redis.
func (s *scope) checkpoints() (*checkpoint.Store, error) {
	cfg, err := wire.Redis(s.config)
	if err != nil {
		return nil, exit(ExitUsage, err)
	}
	opened, err := checkpoint.Open(cfg, s.log)
	if err != nil {
		return nil, exit(ExitUsage, err)
	}
	return opened, nil
}

// withRows runs fn on the tables.
func (a *app) withRows(ctx context.Context, fn func(*scope, *store.Store) error) error {
	s, err := a.scope()
	if err != nil {
		return err
	}
	rows, err := s.rows(ctx)
	if err != nil {
		return fmt.Errorf("source %s: %w", s.source.Name, err)
	}
	err = fn(s, rows)
	if errors.Is(err, store.ErrFilter) {
		err = exit(ExitUsage, err)
	}
	return errors.Join(err, rows.Close())
}

// withCheckpoints runs fn on the checkpoints.
func (a *app) withCheckpoints(fn func(*scope, *checkpoint.Store) error) error {
	s, err := a.scope()
	if err != nil {
		return err
	}
	checkpoints, err := s.checkpoints()
	if err != nil {
		return err
	}
	return errors.Join(fn(s, checkpoints), checkpoints.Close())
}
