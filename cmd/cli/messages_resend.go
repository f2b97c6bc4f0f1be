package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk"
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

// resendView is what resend would do, or has done.
type resendView struct {
	Applied  bool         `json:"applied"`
	Resent   int          `json:"messages"`
	Messages []resendLine `json:"lines"`
}

type resendLine struct {
	messageLine
	History    string `json:"history"`
	ArchivedAt string `json:"archived_at"`
	// Problem is why the message stays in the history.
	Problem string `json:"problem,omitempty"`
}

// Text writes a line for each message.
func (v resendView) Text(p *render.Page) {
	word := "would be sent again"
	if v.Applied {
		word = "will be sent again"
	}
	p.Line("%s %s", human.Plural(int64(v.Resent), "message"), word)
	p.Blank()
	p.Header("HISTORY", "ID", "MSG_ID", "TOPIC", "ARCHIVED", "STAYS, BECAUSE")
	for i := range v.Messages {
		m := &v.Messages[i]
		p.Row(m.History, m.ID, human.Cut(m.MsgID, 40), human.Cut(m.Topic, 40), m.ArchivedAt, m.Problem)
	}
}

func (a *app) resend(ctx context.Context, s *desk.Scope, rows *store.Store, f resendFlags, args []string) error {
	chosen, err := a.archived(ctx, rows, f, args)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no archived message of source %s has one of these ids or msg_ids; look for them with outbox-relay messages show", s.Source.Name)
	}
	who := operator(a.environ, f.reason)
	view := resendView{Applied: f.yes}
	failed := 0
	for i := range chosen {
		m := &chosen[i]
		line := resendLine{messageLine: lineOf(rows, &m.Message), History: m.History.String(), ArchivedAt: m.At}
		problem, err := resendOne(ctx, rows, m, f.yes, note(m, who.User+"@"+who.Host, f.reason))
		if err != nil {
			return errors.Join(err, a.print(view))
		}
		if line.Problem = problem; problem == "" {
			view.Resent++
			if f.yes {
				s.Log.Warn().Str("message_id", m.MsgID).Stringer("table", m.Table).Str("user", who.User).Str("host", who.Host).Str("reason", f.reason).
					Msg("an operator resends a message from the history")
			}
		} else {
			failed++
		}
		view.Messages = append(view.Messages, line)
	}
	err = a.print(view)
	if !f.yes {
		a.say("nothing was changed; run it again with --yes")
	}
	if failed > 0 {
		return errors.Join(err, fmt.Errorf("%s can't be sent again", human.Plural(int64(failed), "message")))
	}
	return err
}

// note is what the row's last_error keeps.
func note(m *store.Archived, who, reason string) string {
	return strings.TrimSuffix(fmt.Sprintf("resent from %s by %s: %s", m.History, who, reason), ": ")
}

// resendOne brings a message back, or says why it stays.
func resendOne(ctx context.Context, rows *store.Store, m *store.Archived, apply bool, note string) (problem string, err error) {
	if apply {
		err = rows.Resend(ctx, *m, note)
	} else {
		err = rows.CanResend(ctx, *m)
	}
	switch {
	case errors.Is(err, store.ErrInTable):
		return "its table has a message of that id or msg_id", nil
	case errors.Is(err, store.ErrFilter):
		return err.Error(), nil
	}
	return "", err
}

// archived finds the messages that were named, each once. Of one that is in a history more than once, the newest is meant.
func (a *app) archived(ctx context.Context, rows *store.Store, f resendFlags, args []string) ([]store.Archived, error) {
	var found []store.Archived
	for _, arg := range args {
		some, err := rows.ShowArchived(ctx, arg)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	if len(f.msgIDs) > 0 {
		some, err := rows.FindArchived(ctx, store.Filter{MsgIDs: f.msgIDs})
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	var chosen []store.Archived
	seen := map[string]bool{}
	for i := range found {
		m := &found[i]
		if f.table != "" && !strings.EqualFold(f.table, m.Table.Name) && !strings.EqualFold(f.table, m.Table.String()) {
			continue
		}
		if key := m.Table.String() + " " + m.MsgID; !seen[key] {
			seen[key] = true
			chosen = append(chosen, *m)
		}
	}
	return chosen, nil
}
