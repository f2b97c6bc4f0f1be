package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/human"
)

func (a *app) checkpointCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "Look at and move the saved position in the binlog",
		Long: `Look at and move the saved position: up to where in the binlog everything is settled. Moving it is seldom needed, since a
relay that loses its place sweeps the table, and never needed to get a single message sent again (messages retry).`,
		Example: `  outbox-relay checkpoint show
  outbox-relay checkpoint history
  outbox-relay checkpoint reset --to table`,
	}
	show := &cobra.Command{
		Use:   "show",
		Short: "Show the position, its age, and whether its binlog still exists",
		Long: `Show the saved position, who saved it and when, and what the server says about it: whether its binlog still exists, how far
it is behind in bytes and seconds, and how long until it is purged.`,
		Example: `  outbox-relay checkpoint show
  outbox-relay checkpoint show --source orders -o json`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCheckpoints(func(s *desk.Scope, checkpoints *checkpoint.Store) error {
				view, err := s.ReadCheckpoint(cmd.Context(), checkpoints)
				if err != nil {
					return err
				}
				return a.print(checkpointView{view})
			})
		},
	}
	cmd.AddCommand(show, a.historyCommand(), a.resetCommand(), a.setCommand(), a.undoCommand())
	return cmd
}

func (a *app) historyCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show who saved or set what, and when",
		Long: `Show the lines of the checkpoint's history, newest first: each new leader's first save, each recovery, and what operators
have set, reset or undone, with their reason.`,
		Example: `  outbox-relay checkpoint history
  outbox-relay checkpoint history --limit 5 -o json`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return misused(cmd, errors.New("--limit must be 1 or more"))
			}
			return a.withCheckpoints(func(s *desk.Scope, checkpoints *checkpoint.Store) error {
				entries, err := checkpoints.History(cmd.Context(), s.Source.Name, limit)
				if err != nil {
					return err
				}
				return a.print(historyView{desk.HistoryOf(s.Source.Name, entries)})
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most `N` lines")
	return cmd
}

// checkpointView shows a saved checkpoint.
type checkpointView struct{ *desk.Checkpoint }

// Text writes it all.
func (v checkpointView) Text(p *render.Page) {
	p.Field("source", "%s", v.Source)
	checkpointText(p, v.Checkpoint)
	if v.Position == nil {
		return
	}
	p.Field("server", "%s (%s)", v.Position.Server, v.Position.Flavor)
	p.Field("gtid", "%s", v.Position.GTID)
	p.Field("epoch", "%d", v.Epoch)
	p.Field("kafka", "offsets of %s", human.Plural(int64(v.Partitions), "partition"))
}

// checkpointText writes what matters most.
func checkpointText(p *render.Page, v *desk.Checkpoint) {
	if v.Position == nil {
		p.Field("checkpoint", "%s", v.Problem)
		return
	}
	p.Field("checkpoint", "%s", v.Position)
	p.Field("saved", "%s ago by %s", seconds(v.AgeSeconds), v.By)
	if v.Binlog != nil {
		binlogText(p, v.Binlog)
	}
}

func binlogText(p *render.Page, v *desk.Binlog) {
	if v.End == nil {
		p.Field("binlog", "%s", v.Problem)
		return
	}
	p.Field("binlog exists", "%s", human.YesNo(v.FileExists))
	if !v.Usable {
		p.Field("usable", "no (%s): %s", v.Recovery, v.Detail)
		return
	}
	behind := fmt.Sprintf("%s in %s more", human.Bytes(v.BytesBehind), human.Plural(int64(v.FilesBehind), "file"))
	if v.SecondsBehind != nil {
		behind += ", " + seconds(*v.SecondsBehind)
	}
	p.Field("behind", "%s", behind)
	switch {
	case v.PurgedInHours != nil:
		p.Field("purged in", "%.1f hours", *v.PurgedInHours)
	case v.RetentionSeconds == 0:
		p.Field("purged", "never by the server itself")
	}
	p.Field("binlog end", "%s", v.End)
	p.Field("problem", "%s", v.Problem)
}

// historyView shows the history of a source's checkpoint.
type historyView struct{ desk.History }

// Text writes a table.
func (v historyView) Text(p *render.Page) {
	if len(v.Entries) == 0 {
		p.Line("no history: source %s never had a checkpoint", v.Source)
		return
	}
	p.Header("WHEN", "EVENT", "BY", "EPOCH", "OLD", "NEW", "REASON")
	for _, e := range v.Entries {
		p.Row(human.Time(e.At), e.Event, e.By, human.Count(e.Epoch, 0), e.Old.String(), e.New.String(), e.Reason)
	}
}
