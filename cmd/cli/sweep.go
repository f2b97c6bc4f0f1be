package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/desk/messages"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/sweeper"
)

func (a *app) sweepCommand() *cobra.Command {
	var dryRun bool
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Send what is due in the table, now",
		Long: `Make one recovery pass: send every due row of status pending and failed, mark it, and end. No binlog is read and the
checkpoint is not moved, so rows go by id rather than in the order of their commits.

It takes the leader's lock. While a relay leads the source it sends nothing, since that relay sweeps by itself
(sweep.interval), and only shows what is due. --dry-run shows that in any case.`,
		Example: `  outbox-relay sweep --dry-run
  outbox-relay sweep
  outbox-relay sweep --source orders --for 10m`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit <= 0 {
				return misused(cmd, errors.New("--for must be more than 0"))
			}
			return a.withRows(cmd.Context(), func(s *desk.Scope, rows *store.Store) error {
				return a.sweep(cmd.Context(), s, rows, dryRun, limit)
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what is due")
	cmd.Flags().DurationVar(&limit, "for", 5*time.Minute, "end after this `TIME`, even if more is due")
	return cmd
}

// sweepView is what a pass did, or would do.
type sweepView struct {
	Source string      `json:"source"`
	Swept  bool        `json:"swept"`
	Leader desk.Leader `json:"leader"`
	Sent   int         `json:"sent"`
	Failed int         `json:"failed"`
	Dead   int         `json:"dead"`
	// Rows counts what the table holds, after the pass if there was one.
	Rows *desk.Counts `json:"rows"`
	// Due is some of what is due, the oldest first.
	Due []dueLine `json:"due"`
}

type dueLine struct {
	Table     string `json:"table"`
	ID        string `json:"id"`
	MsgID     string `json:"msg_id"`
	Topic     string `json:"topic"`
	Status    string `json:"status"`
	Retries   int    `json:"retry_count"`
	NextRetry string `json:"next_retry_time,omitempty"`
}

// Text writes what was done, or what is due.
func (v sweepView) Text(p *render.Page) {
	p.Field("source", "%s", v.Source)
	leaderText(p, v.Leader)
	if v.Swept {
		p.Field("sent", "%d", v.Sent)
		p.Field("refused", "%d for now", v.Failed)
		p.Field("dead", "%d", v.Dead)
	}
	countsText(p, v.Rows)
	if len(v.Due) == 0 {
		p.Field("due", "nothing")
		return
	}
	p.Blank()
	p.Header("TABLE", "ID", "MSG_ID", "TOPIC", "STATUS", "RETRIES", "NEXT_RETRY_TIME")
	for _, m := range v.Due {
		p.Row(m.Table, m.ID, human.Cut(m.MsgID, 40), human.Cut(m.Topic, 40), m.Status, human.Count(int64(m.Retries), 0), m.NextRetry)
	}
}

func (a *app) sweep(ctx context.Context, s *desk.Scope, rows *store.Store, dryRun bool, limit time.Duration) error {
	checkpoints, err := s.Checkpoints()
	if err != nil {
		return err
	}
	view := sweepView{Source: s.Source.Name, Leader: s.Leader(ctx, rows, checkpoints)}
	if err := checkpoints.Close(); err != nil {
		return err
	}
	switch {
	case dryRun:
	case view.Leader.Led:
		a.say("a relay leads source %s and sweeps every %s by itself: nothing was sent from here", s.Source.Name, s.Config.Sweep.Interval)
	default:
		result, err := sweepOnce(ctx, s, limit)
		if errors.Is(err, relay.ErrLed) {
			a.say("a relay has just taken the lead of source %s and sweeps by itself: nothing was sent from here", s.Source.Name)
			break
		}
		view.Swept, view.Sent, view.Failed, view.Dead = true, result.Sent, result.Failed, result.Dead
		if err != nil {
			a.say("swept until it failed: sent %d, refused %d, dead %d", result.Sent, result.Failed, result.Dead)
			return err
		}
	}
	if view.Rows, err = desk.CountRows(ctx, rows); err != nil {
		return err
	}
	if view.Due, err = due(ctx, s, rows); err != nil {
		return err
	}
	return a.print(view)
}

// lockWait is how long a pass waits for a lock that nobody should hold.
const lockWait = 3 * time.Second

// sweepOnce builds a relay of which only the sweeper is used.
func sweepOnce(ctx context.Context, s *desk.Scope, limit time.Duration) (sweeper.Result, error) {
	built, err := wire.Open(ctx, s.Config, s.Source, metrics.New(""), s.Log)
	if err != nil {
		return sweeper.Result{}, err
	}
	deadline := time.Now().Add(limit)
	result, err := built.SweepOnce(ctx, lockWait, func(sweeper.Result) bool { return time.Now().After(deadline) })
	return result, errors.Join(err, built.Close())
}

// due lists some of what is due.
func due(ctx context.Context, s *desk.Scope, rows *store.Store) ([]dueLine, error) {
	const most = 20
	found, err := rows.Candidates(ctx, store.Query{Limit: most})
	if err != nil {
		return nil, err
	}
	lines := make([]dueLine, len(found))
	for i := range found {
		row := &found[i]
		lines[i] = dueLine{
			Table: row.Table.String(), ID: messages.Number(rows, row.Ref()), MsgID: row.MsgID, Topic: row.Topic,
			Status: row.Status.String(), Retries: row.RetryCount, NextRetry: row.NextRetry,
		}
	}
	return lines, nil
}
