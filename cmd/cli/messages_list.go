package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/desk/messages"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/internal/reports/acks"
	"example.com/outbox-relay/store"
)

func (a *app) listCommand() *cobra.Command {
	var f filterFlags
	var unconsumed time.Duration
	cmd := &cobra.Command{
		Use:   "list [ID|MSG_ID...]",
		Short: "List messages, the newest first",
		Long: `List messages, of each table the newest first. All conditions must hold; ids and msg_ids may be given as arguments. When
there are more than --limit, the last line tells the --cursor to go on with.`,
		Example: `  outbox-relay messages list
  outbox-relay messages list --status pending --older-than 5m
  outbox-relay messages list --status failed,dead --topic orders --error "too large" -o json
  outbox-relay messages list 4711 4712 order-8f14
  outbox-relay messages list --unconsumed-for 1h --topic orders`,
		Args: cobra.ArbitraryArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			filters, err := f.filters(cmd, args)
			if err != nil {
				return err
			}
			if f.limit == 0 {
				return misused(cmd, errors.New("--limit must be 1 or more"))
			}
			if unconsumed != 0 {
				return a.unconsumed(cmd, &f, unconsumed, args)
			}
			return a.withRows(cmd.Context(), func(_ *desk.Scope, rows *store.Store) error {
				list, err := messages.List(cmd.Context(), rows, filters)
				if err != nil {
					return err
				}
				return a.print(listView{list})
			})
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&f.limit, "limit", 50, "list at most `N` messages")
	cmd.Flags().DurationVar(&unconsumed, "unconsumed-for", 0, "only those sent longer ago than this `AGE` that no consumer, or not every group of acks.groups, has reported; the oldest first")
	suggest(cmd, "unconsumed-for", func() []string { return nil })
	cmd.Flags().StringVar(&f.cursor, "cursor", "", "go on behind the `CURSOR` that a list has shown")
	return cmd
}

// listView shows a list of messages.
type listView struct{ messages.Listing }

// Text writes a table.
func (v listView) Text(p *render.Page) {
	if len(v.Messages) == 0 {
		p.Line("no messages")
		return
	}
	listTable(p, v.Messages)
	if v.Cursor != "" {
		p.Line("more: --cursor %q", v.Cursor)
	}
}

func listTable(p *render.Page, lines []messages.Line) {
	p.Header("TABLE", "ID", "MSG_ID", "TOPIC", "STATUS", "RETRIES", "AGE", "DUE", "SIZE", "LAST ERROR")
	for _, m := range lines {
		due := ""
		if m.Due != nil {
			due = dueText(*m.Due)
		}
		p.Row(m.Table, m.ID, human.Cut(m.MsgID, 40), human.Cut(m.Topic, 40), m.Status, fmt.Sprint(m.Retries),
			seconds(m.Age), due, human.Bytes(uint64(max(m.Bytes, 0))), human.Cut(m.LastError, 60))
	}
}

func seconds(s float64) string { return human.Duration(time.Duration(s * float64(time.Second))) }

func dueText(s float64) string {
	if s <= 0 {
		return "now"
	}
	return "in " + seconds(s)
}

// unconsumed lists what was sent longer than an age ago and has not been reported, the oldest first.
func (a *app) unconsumed(cmd *cobra.Command, f *filterFlags, age time.Duration, args []string) error {
	switch {
	case age < 0:
		return misused(cmd, errors.New("--unconsumed-for must not be negative"))
	case len(args)+len(f.msgIDs)+len(f.statuses) > 0 || f.key+f.failure+f.table+f.cursor != "" || f.olderThan+f.newerThan > 0:
		return misused(cmd, errors.New("--unconsumed-for goes with --topic and --limit only: it means sent messages"))
	}
	return a.withRows(cmd.Context(), func(s *desk.Scope, rows *store.Store) error {
		list, err := messages.ListUnconsumed(cmd.Context(), s.Config, rows, acks.UnreportedQuery{Topic: f.topic, For: age}, f.limit)
		if err != nil {
			return err
		}
		return a.print(unconsumedView{list})
	})
}

// unconsumedView shows messages that nobody, or not every group, has reported.
type unconsumedView struct{ messages.Unconsumed }

// Text writes a table.
func (v unconsumedView) Text(p *render.Page) {
	if len(v.Messages) == 0 && v.Complete {
		p.Line("no messages")
		return
	}
	if len(v.Messages) > 0 {
		p.Header("TABLE", "ID", "MSG_ID", "TOPIC", "AGE", "SENT", "REPORTED BY", "MISSING")
	}
	for i := range v.Messages {
		m := &v.Messages[i]
		missing := "anybody"
		if m.Missing != nil {
			missing = strings.Join(m.Missing, ",")
		}
		p.Row(m.Table, m.ID, human.Cut(m.MsgID, 40), human.Cut(m.Topic, 40), seconds(m.Age), m.Sent, human.Cut(strings.Join(m.Reports, ","), 60), human.Cut(missing, 60))
	}
	if !v.Complete {
		p.Line("there may be more: raise --limit, or narrow it by --topic (it looks at %s sent messages at most)", human.Count(messages.UnconsumedLook, 0))
	}
}
