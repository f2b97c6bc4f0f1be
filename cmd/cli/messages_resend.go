package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/desk/messages"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/store"
)

// resendFlags are resend's.
type resendFlags struct {
	fromHistory, yes, dryRun bool
	table, reason            string
	msgIDs                   []string
}

func (a *app) resendCommand() *cobra.Command {
	var f resendFlags
	cmd := &cobra.Command{
		Use:   "resend --from-history ID|MSG_ID...",
		Short: "Send archived messages again",
		Long: `Send messages again that were archived: they come back from the history into their table as pending ones, with their msg_id
and a new id, and go the ordinary way, in order with everything else, and are marked and later archived again. They carry the
header ` + words.HeaderResend + ` with the number of times that they were sent again, so their table needs the headers column. A message
that its table has (again) stays where it is and is told. Without --yes it changes nothing and says which messages it would take.

Messages that are still in their table: messages retry --status sent --resend.`,
		Example: `  outbox-relay messages resend --from-history order-8f14
  outbox-relay messages resend --from-history order-8f14 order-8f15 --yes --reason "points lost theirs, ticket 4711"`,
		Args: cobra.ArbitraryArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !f.fromHistory:
				return misused(cmd, errors.New("say --from-history; for messages that are still in their table: messages retry --status sent --resend"))
			case f.yes && f.dryRun:
				return misused(cmd, errors.New("--yes and --dry-run contradict each other"))
			case len(args)+len(f.msgIDs) == 0:
				return misused(cmd, errors.New("name the messages by id or msg_id"))
			}
			return a.withRows(cmd.Context(), func(s *desk.Scope, rows *store.Store) error { return a.resend(cmd.Context(), s, rows, f, args) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.fromHistory, "from-history", false, "take them from the history table")
	flags.BoolVar(&f.yes, "yes", false, "do it; without this the command only says what it would do")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what it would do, as without --yes")
	flags.StringVar(&f.table, "table", "", "only of this `TABLE`, where the source has several")
	flags.StringSliceVar(&f.msgIDs, "msg-id", nil, "also these `MSG_IDS`; for one that looks like a number")
	flags.StringVar(&f.reason, "reason", "", "why, for the log and the row's last_error: any `TEXT`")
	for _, name := range []string{"table", "msg-id", "reason"} {
		suggest(cmd, name, func() []string { return nil })
	}
	return cmd
}

// resendView shows what resend would do, or has done.
type resendView struct{ *messages.Resent }

// Text writes a line for each message.
func (v resendView) Text(p *render.Page) {
	word := "would be sent again"
	if v.Applied {
		word = "will be sent again"
	}
	p.Line("%s %s", human.Plural(int64(v.Count), "message"), word)
	p.Blank()
	p.Header("HISTORY", "ID", "MSG_ID", "TOPIC", "ARCHIVED", "STAYS, BECAUSE")
	for i := range v.Messages {
		m := &v.Messages[i]
		p.Row(m.History, m.ID, human.Cut(m.MsgID, 40), human.Cut(m.Topic, 40), m.ArchivedAt, m.Problem)
	}
}

func (a *app) resend(ctx context.Context, s *desk.Scope, rows *store.Store, f resendFlags, args []string) error {
	resent, err := messages.Resend(ctx, s, rows, messages.ResendRequest{
		Names: args, MsgIDs: f.msgIDs, Table: f.table, Who: operator(a.environ, f.reason), Apply: f.yes,
	})
	if resent == nil {
		return err
	}
	if printed := a.print(resendView{resent}); err != nil || printed != nil {
		return errors.Join(err, printed)
	}
	if !f.yes {
		a.say("nothing was changed; run it again with --yes")
	}
	if n := resent.Stay(); n > 0 {
		return fmt.Errorf("%s can't be sent again", human.Plural(int64(n), "message"))
	}
	return nil
}
