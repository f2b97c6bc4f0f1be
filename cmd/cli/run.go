package cli

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/console"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/wire"
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
	boundGarbage(a.environ, len(c.Sources))
	log := a.logger(c)
	log.Info().Str("version", a.version).Int("sources", len(c.Sources)).Msg("outbox-relay starts")
	registry := metrics.New(a.version)
	chosen, err := a.sources(c)
	if err != nil {
		return err
	}
	sources := make([]*wire.Starting, len(chosen))
	for i, source := range chosen {
		sources[i] = wire.Start(c, source, registry, log)
	}
	web, err := serve(ctx, c, a.version, registry, sources, log)
	if err != nil {
		return err
	}
	group, running := errgroup.WithContext(ctx)
	for _, s := range sources {
		group.Go(func() error { return s.Run(running) })
	}
	err = group.Wait()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), consoleTimeout) // the console answers until the end
	defer cancel()
	err = errors.Join(err, web.Close(stopping))
	for _, s := range sources {
		err = errors.Join(err, s.Close())
	}
	log.Info().AnErr("error", err).Msg("outbox-relay stops")
	if errors.Is(err, canal.ErrCannotStream) {
		return exit(ExitSource, err)
	}
	return err
}

// garbagePercent keeps the heap small: what is in flight lives for milliseconds, and with Go's default of 100 a catch-up
// over a large backlog holds as much garbage as messages (TestBacklog in test/bench: 107 MiB at its highest, 81 MiB with this, for a
// third more CPU while it catches up).
const garbagePercent = 30

// memoryBase and memoryPerSource are how much memory the process takes before its garbage is collected without delay: what
// it really needs is bounded for each source, and less than this (TestMillionRowTransaction in test/stories).
const (
	memoryBase      = 128 << 20
	memoryPerSource = 64 << 20
)

// boundGarbage sets both, unless whoever runs the relay has chosen otherwise.
func boundGarbage(environ []string, sources int) {
	chosen := func(name string) bool {
		return slices.ContainsFunc(environ, func(setting string) bool { return strings.HasPrefix(setting, name+"=") })
	}
	if !chosen("GOGC") {
		debug.SetGCPercent(garbagePercent)
	}
	if !chosen("GOMEMLIMIT") {
		debug.SetMemoryLimit(memoryBase + memoryPerSource*int64(sources))
	}
}

const consoleTimeout = 2 * time.Second

// health shows a relay to the console.
type health struct{ *wire.Starting }

// Ready returns what the relay needs, in the console's words.
func (h health) Ready() []console.Check {
	var checks []console.Check
	for _, c := range h.Starting.Ready() {
		checks = append(checks, console.Check(c))
	}
	return checks
}

// Report takes a consumer's report.
func (h health) Report(ctx context.Context, r report.Report) (report.Counts, error) {
	return h.Starting.Report(ctx, r)
}

// Status returns the relay's state.
func (h health) Status() any { return h.Starting.Status() }

// serve starts the console.
func serve(ctx context.Context, c *config.Config, version string, registry *metrics.Registry, sources []*wire.Starting, log zerolog.Logger) (*console.Console, error) {
	shown := make([]console.Source, len(sources))
	for i, s := range sources {
		shown[i] = health{s}
	}
	web := console.New(console.Config{
		Listen: c.Console.Listen, Token: c.Console.Token.Reveal(), Prefix: c.Console.Prefix, Version: version,
	}, registry.Handler(), shown, log)
	return web, web.Start(ctx)
}
