package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/cmd/cli/render"
)

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
			return a.withCheckpoints(func(s *scope, checkpoints *checkpoint.Store) error {
				entries, err := checkpoints.History(cmd.Context(), s.source.Name, limit)
				if err != nil {
					return err
				}
				return a.print(historyOf(s.source.Name, entries))
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most `N` lines")
	return cmd
}

// historyView is the history of a source's checkpoint.
type historyView struct {
	Source  string        `json:"source"`
	Entries []historyLine `json:"entries"`
}

type historyLine struct {
	At     time.Time     `json:"at"`
	Event  string        `json:"event"`
	By     string        `json:"by"`
	User   string        `json:"user,omitempty"`
	Host   string        `json:"host,omitempty"`
	Reason string        `json:"reason,omitempty"`
	Epoch  int64         `json:"epoch"`
	Old    *positionView `json:"old"`
	New    *positionView `json:"new"`
}

func historyOf(source string, entries []checkpoint.Entry) historyView {
	view := historyView{Source: source, Entries: make([]historyLine, len(entries))}
	for i, e := range entries {
		view.Entries[i] = historyLine{
			At: e.At, Event: e.Event, By: e.By, User: e.User, Host: e.Host, Reason: e.Reason, Epoch: e.Epoch,
			Old: snapshotPosition(e.Old), New: snapshotPosition(e.New),
		}
	}
	return view
}

func snapshotPosition(s checkpoint.Snapshot) *positionView {
	if !s.Present || s.Position.IsZero() {
		return nil
	}
	return viewOf(s.Position)
}

// Text writes a table.
func (v historyView) Text(p *render.Page) {
	if len(v.Entries) == 0 {
		p.Line("no history: source %s never had a checkpoint", v.Source)
		return
	}
	p.Header("WHEN", "EVENT", "BY", "EPOCH", "OLD", "NEW", "REASON")
	for _, e := range v.Entries {
		p.Row(render.Time(e.At), e.Event, e.By, render.Count(e.Epoch, 0), e.Old.String(), e.New.String(), e.Reason)
	}
}
