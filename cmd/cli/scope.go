package cli

import (
	"context"
	"errors"
	"fmt"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/desk"
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

// scope reads the configuration and chooses the source.
func (a *app) scope() (*desk.Scope, error) {
	c, err := a.load()
	if err != nil {
		return nil, err
	}
	s, err := c.Source(a.flags.source)
	if err != nil {
		return nil, exit(ExitUsage, err)
	}
	return &desk.Scope{Config: c, Source: s, Log: a.quiet(c)}, nil
}

// withRows runs fn on the tables.
func (a *app) withRows(ctx context.Context, fn func(*desk.Scope, *store.Store) error) error {
	s, err := a.scope()
	if err != nil {
		return err
	}
	rows, err := s.Rows(ctx)
	if err != nil {
		return fmt.Errorf("source %s: %w", s.Source.Name, err)
	}
	err = fn(s, rows)
	if errors.Is(err, store.ErrFilter) {
		err = exit(ExitUsage, err)
	}
	return errors.Join(err, rows.Close())
}

// withCheckpoints runs fn on the checkpoints.
func (a *app) withCheckpoints(fn func(*desk.Scope, *checkpoint.Store) error) error {
	s, err := a.scope()
	if err != nil {
		return err
	}
	checkpoints, err := s.Checkpoints()
	if err != nil {
		return err
	}
	return errors.Join(fn(s, checkpoints), checkpoints.Close())
}
