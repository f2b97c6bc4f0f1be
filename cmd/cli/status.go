package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/retry"
)

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	var every time.Duration
	var address string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the running relay's state on one screen",
		Long: `Show what the running relay says about itself: its role, where it is in the binlog, what is in flight, which topics are
closed and why. It asks the console (console.listen and console.token of the configuration, or --url).

Where no relay answers, it says so, and shows what Redis and the database tell: the checkpoint, who leads, how many rows
wait. --watch refreshes until it is interrupted.`,
		Example: `  outbox-relay status
  outbox-relay status --watch --every 1s
  outbox-relay status --url http://relay-2:9180 -o json`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 100*time.Millisecond {
				return misused(cmd, errors.New("--every must be 100ms or more"))
			}
			c, err := a.load()
			if err != nil {
				return err
			}
			chosen, err := a.sources(c)
			if err != nil {
				return err
			}
			if watch {
				return a.watch(cmd.Context(), every, func(ctx context.Context) error { return a.status(ctx, c, chosen, address) })
			}
			return a.status(cmd.Context(), c, chosen, address)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "refresh until interrupted")
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "refresh at this `INTERVAL`")
	cmd.Flags().StringVar(&address, "url", "", "ask the console at `URL` instead of console.listen")
	return cmd
}

// watch shows something again and again; the end of ctx is how it is meant to end.
func (a *app) watch(ctx context.Context, every time.Duration, show func(context.Context) error) error {
	for {
		if a.format == render.Table && isTerminal(a.streams.Out) {
			_, _ = fmt.Fprint(a.streams.Out, "\x1b[H\x1b[2J") // home, clear
		}
		err := show(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // being interrupted is how it ends
		}
		if err != nil {
			a.say("error: %s", err) // it may work the next time
		}
		if retry.Wait(ctx, every) != nil {
			return nil //nolint:nilerr // likewise
		}
		if a.format == render.Table && !isTerminal(a.streams.Out) || a.format == render.YAML {
			_, _ = fmt.Fprintln(a.streams.Out, "---")
		}
	}
}

func (a *app) status(ctx context.Context, c *config.Config, chosen []config.Source, address string) error {
	client, err := consoleClient(c, address)
	if err != nil {
		return err
	}
	running, err := desk.AskRelay(ctx, client)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.say("no running relay to ask: %s", err)
		return a.outside(ctx, c, chosen)
	}
	if a.flags.source != "" {
		running = running.Only(a.flags.source)
	}
	return a.print(statusView{running})
}

// outside shows what can be known while no relay answers. It fails only when nothing at all could be learnt.
func (a *app) outside(ctx context.Context, c *config.Config, chosen []config.Source) error {
	scopes := make([]*desk.Scope, len(chosen))
	for i, source := range chosen {
		scopes[i] = &desk.Scope{Config: c, Source: source, Log: a.quiet(c)}
	}
	seen := desk.LookOutside(ctx, scopes)
	err := a.print(outsideView{seen})
	if err == nil && !seen.Known() {
		err = errors.New("neither the relay nor its database nor its Redis could be asked; outbox-relay doctor says what is wrong")
	}
	return err
}
