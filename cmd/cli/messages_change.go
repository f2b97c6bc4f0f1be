package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/desk/messages"
	"example.com/outbox-relay/internal/human"
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
			return a.changeMessages(cmd, args, &f, messages.Retry)
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
			return a.changeMessages(cmd, args, &f, messages.Discard)
		},
	}
	f.register(cmd)
	return cmd
}

// deskView shows what retry or discard would do, or has done.
type deskView struct{ messages.Changed }

// Text writes the count and, of a dry run, the sample.
func (v deskView) Text(p *render.Page) {
	words := map[messages.Action][2]string{messages.Retry: {"would be sent again", "will be sent again"}, messages.Discard: {"would be discarded", "discarded"}}[v.Action]
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

func (a *app) changeMessages(cmd *cobra.Command, args []string, f *deskFlags, action messages.Action) error {
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
	for i := range filters {
		filters[i].Resend = f.resend
	}
	return a.withRows(cmd.Context(), func(_ *desk.Scope, rows *store.Store) error {
		changed, err := messages.Change(cmd.Context(), rows, action, filters, f.yes)
		if err != nil {
			return err
		}
		err = a.print(deskView{changed})
		if !f.yes {
			a.say("nothing was changed; run it again with --yes")
		}
		return err
	})
}
