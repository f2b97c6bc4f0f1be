package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/cmd/wire"
	"example.com/outbox-relay/config"
	"example.com/outbox-relay/console"
	"example.com/outbox-relay/metrics"
	"example.com/outbox-relay/relay"
)

func (a *app) runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the relay until SIGTERM or SIGINT",
		Long: `Run the relay: stream, sweep, mark, checkpoint and serve the console.

On SIGTERM or SIGINT it stops reading, waits for what is in flight to be acked, marked and checkpointed (shutdown.timeout),
hands over to a standby and exits 0. Run two or more with the same configuration: one leads each source, the others stand by.`,
		Example: `  outbox-relay run
  outbox-relay run --config /etc/outbox-relay/outbox-relay.yaml --set log.level=debug`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load()
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), c)
		},
	}
}

// run relays all sources and serves the console until ctx ends, or one of them can't go on.
func (a *app) run(ctx context.Context, c *config.Config) error {
	boundGarbage(a.environ)
	log := a.logger(c)
	log.Info().Str("version", a.version).Int("sources", len(c.Sources)).Msg("outbox-relay starts")
	registry := metrics.New(a.version)
	chosen, err := a.sources(c)
	if err != nil {
		return err
	}
	sources, err := openSources(ctx, c, chosen, registry, log)
	if err != nil && ctx.Err() != nil {
		return nil // stopped while waiting for a server
	}
	if err != nil {
		return err
	}
	web, err := serve(ctx, c, a.version, registry, sources, log)
	if err != nil {
		return errors.Join(err, closeSources(sources))
	}
	group, running := errgroup.WithContext(ctx)
	for _, s := range sources {
		group.Go(func() error {
			if err := s.Run(running); err != nil {
				return fmt.Errorf("source %s: %w", s.Name(), err)
			}
			return nil
		})
	}
	err = group.Wait()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), consoleTimeout) // the console answers until the end
	defer cancel()
	err = errors.Join(err, web.Close(stopping), closeSources(sources))
	log.Info().AnErr("error", err).Msg("outbox-relay stops")
	if errors.Is(err, canal.ErrCannotStream) {
		return exit(ExitSource, err)
	}
	return err
}

// garbagePercent keeps the heap small: what is in flight lives for milliseconds, and with Go's default of 100 a catch-up
// over a large backlog holds as much garbage as messages (TestBacklog in test/bench: 107 MiB at its highest, 86 MiB with this).
const garbagePercent = 50

// boundGarbage sets it, unless whoever runs the relay has chosen otherwise.
func boundGarbage(environ []string) {
	for _, setting := range environ {
		if strings.HasPrefix(setting, "GOGC=") {
			return
		}
	}
	debug.SetGCPercent(garbagePercent)
}

const consoleTimeout = 2 * time.Second

func openSources(ctx context.Context, c *config.Config, chosen []config.Source, registry *metrics.Registry, log zerolog.Logger) ([]*wire.Source, error) {
	var sources []*wire.Source
	for _, s := range chosen {
		source, err := wire.Open(ctx, c, s, registry, log)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("source %s: %w", s.Name, err), closeSources(sources))
		}
		sources = append(sources, source)
	}
	return sources, nil
}

func closeSources(sources []*wire.Source) error {
	var errs []error
	for _, s := range sources {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// health shows a relay to the console.
type health struct{ *relay.Relay }

// Ready returns what the relay needs, in the console's words.
func (h health) Ready() []console.Check {
	var checks []console.Check
	for _, c := range h.Relay.Ready() {
		checks = append(checks, console.Check(c))
	}
	return checks
}

// Status returns the relay's state.
func (h health) Status() any { return h.Relay.Status() }

// serve starts the console.
func serve(ctx context.Context, c *config.Config, version string, registry *metrics.Registry, sources []*wire.Source, log zerolog.Logger) (*console.Console, error) {
	shown := make([]console.Source, len(sources))
	for i, s := range sources {
		shown[i] = health{s.Relay}
	}
	web := console.New(console.Config{
		Listen: c.Console.Listen, Token: c.Console.Token.Reveal(), Prefix: c.Console.Prefix, Version: version,
	}, registry.Handler(), shown, log)
	return web, web.Start(ctx)
}
