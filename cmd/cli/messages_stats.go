package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/desk/messages"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

func (a *app) statsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stats",
		Short: "Count the rows by table, status and topic",
		Long: `Count the rows of each table by status, and the unfinished ones (pending, failed, dead) by topic. The cost is bounded: of each
status at most 100,000 rows are counted in each table, and a number that reaches that is shown with a plus.`,
		Example: `  outbox-relay messages stats
  outbox-relay messages stats -o json`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRows(cmd.Context(), func(_ *desk.Scope, rows *store.Store) error {
				stats, err := messages.Count(cmd.Context(), rows)
				if err != nil {
					return err
				}
				return a.print(statsView{stats})
			})
		},
	}
}

// statsView shows the outbox at a glance.
type statsView struct{ messages.Stats }

// Text writes two tables.
func (v statsView) Text(p *render.Page) {
	p.Header("TABLE", "PENDING", "FAILED", "DEAD", "SENT", "CONSUMED", "DISCARDED", "OLDEST PENDING")
	for _, t := range v.Tables {
		row := []string{t.Table}
		for _, status := range []outbox.Status{outbox.Pending, outbox.Failed, outbox.Dead, outbox.Sent, outbox.Consumed, outbox.Discarded} {
			row = append(row, human.Count(t.Counts[status.String()], v.Cap))
		}
		p.Row(append(row, seconds(t.OldestPendingSeconds))...)
	}
	first := true
	for _, t := range v.Tables {
		for _, topic := range t.Topics {
			if first {
				p.Blank()
				p.Header("TABLE", "TOPIC", "STATUS", "MESSAGES", "OLDEST", "MOST RETRIES")
				first = false
			}
			p.Row(t.Table, topic.Topic, topic.Status, human.Count(topic.Messages, v.Cap), seconds(topic.OldestSeconds), fmt.Sprint(topic.MostRetries))
		}
	}
}
