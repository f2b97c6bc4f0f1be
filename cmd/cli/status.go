package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/console"
	"example.com/outbox-relay/relay"
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
	client, err := (&scope{config: c}).consoleClient(address)
	if err != nil {
		return err
	}
	answer, err := client.Status(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.say("no running relay to ask: %s", err)
		return a.outside(ctx, c, chosen)
	}
	view := statusView{Running: true, Version: answer.Version, Started: answer.Started, Ready: answer.Ready}
	view.UptimeSeconds = render.Seconds(time.Since(answer.Started).Round(time.Second))
	for _, one := range decodeSources(answer) {
		if a.flags.source == "" || one.Name == a.flags.source {
			view.Sources = append(view.Sources, one)
		}
	}
	return a.print(view)
}

// sourceState is one source of a running relay.
type sourceState struct {
	Name   string                `json:"name"`
	Ready  bool                  `json:"ready"`
	Checks []console.CheckStatus `json:"checks"`
	State  relay.Status          `json:"state"`
	// How long ago these were, by the clock here; left out when they have not been.
	CheckpointAgeSeconds float64 `json:"checkpoint_age_seconds,omitempty"`
	LastSweepAgeSeconds  float64 `json:"last_sweep_age_seconds,omitempty"`
}

// decodeSources reads the relay's own part of the answer. A relay of another version may tell more or less.
func decodeSources(answer console.Status) []sourceState {
	states := make([]sourceState, 0, len(answer.Sources))
	for _, s := range answer.Sources {
		one := sourceState{Name: s.Name, Ready: s.Ready, Checks: s.Checks}
		if err := json.Unmarshal(s.Status, &one.State); err != nil {
			one.State.Errors = append(one.State.Errors, "its state can't be read: is it of another version?")
		}
		one.CheckpointAgeSeconds, one.LastSweepAgeSeconds = age(one.State.Saved), age(one.State.LastSweep)
		states = append(states, one)
	}
	return states
}

// age is how long ago something was, 0 for what has not been. Clocks of two machines may be apart.
func age(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(render.Seconds(time.Since(at)), 0.001)
}
