package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/human"
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
				view, err := listMessages(cmd.Context(), rows, filters, f.limit)
				if err != nil {
					return err
				}
				return a.print(view)
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

// messageLine is a message in a list.
type messageLine struct {
	Table     string  `json:"table"`
	ID        string  `json:"id"`
	MsgID     string  `json:"msg_id"`
	Topic     string  `json:"topic"`
	Status    string  `json:"status"`
	Retries   int     `json:"retry_count"`
	Age       float64 `json:"age_seconds"`
	NextRetry string  `json:"next_retry_time,omitempty"`
	// Due is how long until next_retry_time, by the database's clock; negative when that is past.
	Due       *float64 `json:"due_in_seconds,omitempty"`
	Bytes     int64    `json:"content_bytes"`
	LastError string   `json:"last_error,omitempty"`
}

// listView is a list of messages.
type listView struct {
	Messages []messageLine `json:"messages"`
	// Cursor is set when there may be more.
	Cursor string `json:"cursor,omitempty"`
}

func listMessages(ctx context.Context, rows *store.Store, filters []store.Filter, limit int) (listView, error) {
	view := listView{Messages: []messageLine{}}
	for _, f := range filters {
		found, err := rows.List(ctx, f)
		if err != nil {
			return view, err
		}
		for i := range found {
			view.Messages = append(view.Messages, lineOf(rows, &found[i]))
		}
		if len(found) > 0 && len(found) >= limit && len(filters) == 1 {
			view.Cursor = found[len(found)-1].Cursor
		}
	}
	return view, nil
}

func lineOf(rows *store.Store, m *store.Message) messageLine {
	line := messageLine{
		Table: m.Table.String(), ID: number(rows, m.Ref()), MsgID: m.MsgID, Topic: m.Topic, Status: statusText(m),
		Retries: m.RetryCount, Age: human.Seconds(m.Age), NextRetry: m.NextRetry, Bytes: m.Bytes, LastError: m.LastError,
	}
	if m.NextRetry != "" {
		due := human.Seconds(m.Due)
		line.Due = &due
	}
	return line
}

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

func listTable(p *render.Page, messages []messageLine) {
	p.Header("TABLE", "ID", "MSG_ID", "TOPIC", "STATUS", "RETRIES", "AGE", "DUE", "SIZE", "LAST ERROR")
	for _, m := range messages {
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
