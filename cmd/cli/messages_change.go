package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// deskFlags are what retry and discard take.
type deskFlags struct {
	filterFlags
	yes, dryRun, all, resend bool
}

func (f *deskFlags) register(cmd *cobra.Command) {
	f.filterFlags.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.yes, "yes", false, "do it; without this the command only says what it would do")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what it would do, as without --yes")
	flags.BoolVar(&f.all, "all", false, "really all failed and dead messages, where nothing else chooses")
	flags.IntVar(&f.limit, "limit", 0, "change at most `N` messages; 0 is no limit")
}

func (a *app) retryCommand() *cobra.Command {
	var f deskFlags
	cmd := &cobra.Command{
		Use:   "retry [ID|MSG_ID...]",
		Short: "Send messages again: dead and failed ones, now",
		Long: `Make messages due now, with all their retries ahead: failed and dead ones, unless --status says otherwise. The relay's next
sweep takes them. Without --yes it changes nothing and says which messages it would take.

Sent, consumed and discarded messages are sent again only with --resend: their consumers see them twice.`,
		Example: `  outbox-relay messages retry 4711
  outbox-relay messages retry --status dead --topic orders --yes
  outbox-relay messages retry --error "unknown topic" --yes
  outbox-relay messages retry --status sent --newer-than 1h --topic orders --resend --yes`,
		Args: cobra.ArbitraryArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.desk(cmd, args, &f, "retry", (*store.Store).Retry)
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.resend, "resend", false, "also take sent, consumed and discarded messages, if --status asks for them")
	return cmd
}

func (a *app) discardCommand() *cobra.Command {
	var f deskFlags
	cmd := &cobra.Command{
		Use:   "discard [ID|MSG_ID...]",
		Short: "Give messages up: dead and failed ones",
		Long: `Give messages up: failed and dead ones become discarded and are never sent, unless somebody retries them with --resend.
Without --yes it changes nothing and says which messages it would take.`,
		Example: `  outbox-relay messages discard 4711
  outbox-relay messages discard --status dead --older-than 720h --yes`,
		Args: cobra.ArbitraryArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.desk(cmd, args, &f, "discard", (*store.Store).Discard)
		},
	}
	f.register(cmd)
	return cmd
}

// sampleSize is how many of the chosen messages are shown.
const sampleSize = 10

// deskView is what retry or discard would do, or has done.
type deskView struct {
	Action string `json:"action"`
	// Applied tells that Messages were changed; otherwise they would be.
	Applied  bool          `json:"applied"`
	Messages int64         `json:"messages"`
	Sample   []messageLine `json:"sample"`
}

// Text writes the count and, of a dry run, the sample.
func (v deskView) Text(p *render.Page) {
	words := map[string][2]string{"retry": {"would be sent again", "will be sent again"}, "discard": {"would be discarded", "discarded"}}[v.Action]
	if v.Applied {
		p.Line("%s %s", human.Plural(v.Messages, "message"), words[1])
		return
	}
	p.Line("%s %s", human.Plural(v.Messages, "message"), words[0])
	if len(v.Sample) > 0 {
		p.Blank()
		listTable(p, v.Sample)
		if v.Messages > int64(len(v.Sample)) {
			p.Line("and %s more", human.Count(v.Messages-int64(len(v.Sample)), 0))
		}
	}
}

type deskAction func(*store.Store, context.Context, store.Filter, bool) (int64, error)

func (a *app) desk(cmd *cobra.Command, args []string, f *deskFlags, name string, act deskAction) error {
	switch {
	case f.yes && f.dryRun:
		return misused(cmd, errors.New("--yes and --dry-run contradict each other"))
	case f.yes && !f.all && !f.chosen(args):
		return misused(cmd, errors.New("nothing says which messages: name or filter them, or say --all"))
	}
	filters, err := f.filters(cmd, args)
	if err != nil {
		return err
	}
	return a.withRows(cmd.Context(), func(_ *desk.Scope, rows *store.Store) error {
		view := deskView{Action: name, Applied: f.yes, Sample: []messageLine{}}
		for i := range filters {
			filters[i].Resend = f.resend
			if !f.yes && f.limit == 0 { // a limit takes the oldest, a list shows the newest
				if view.Sample, err = sample(cmd.Context(), rows, view.Sample, filters[i]); err != nil {
					return err
				}
			}
			n, err := act(rows, cmd.Context(), filters[i], !f.yes)
			view.Messages += n
			if err != nil {
				if view.Messages > 0 && f.yes {
					err = fmt.Errorf("%w; %s were changed before that", err, human.Plural(view.Messages, "message"))
				}
				return err
			}
		}
		err := a.print(view)
		if !f.yes {
			a.say("nothing was changed; run it again with --yes")
		}
		return err
	})
}

// sample lists some of the messages that an action would take.
func sample(ctx context.Context, rows *store.Store, lines []messageLine, f store.Filter) ([]messageLine, error) {
	if len(f.Statuses) == 0 {
		f.Statuses = []outbox.Status{outbox.Failed, outbox.Dead}
	}
	f.Limit = max(1, sampleSize-len(lines))
	found, err := rows.List(ctx, f)
	for i := range found {
		lines = append(lines, lineOf(rows, &found[i]))
	}
	return lines, err
}
