package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/archive"
	"example.com/outbox-relay/internal/archive/history"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/store"
)

func (a *app) archiveCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "Move rows that are done with to the history table, now",
		Long: `Make one archiving pass: move rows of archive.statuses that were last changed longer ago than archive.after to the table's
history (archive.table), batch by batch, and end. A leading relay does the same every archive.interval, when archive.enabled
is set; both at once do no harm.

Each batch is one transaction: a row is in exactly one of the two tables whenever the command is ended or killed, and it can simply be
run again. Batches and pauses follow what batches cost the database, and nothing is moved while source.replica is more than ten
seconds behind. The history is made by the first pass and gets the columns that the table gets. Pending, failed, dead and discarded
messages are never moved.

--dry-run counts what would be moved, and needs no archive.enabled.`,
		Example: `  outbox-relay archive --dry-run
  outbox-relay archive
  outbox-relay archive --set archive.after=720h`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRows(cmd.Context(), func(s *desk.Scope, rows *store.Store) error {
				if !dryRun && !s.Config.Archive.Enabled {
					return exit(ExitUsage, errors.New("archive.enabled is false: set it, so that the relay knows history tables for what they are; --dry-run goes without"))
				}
				return a.archive(cmd.Context(), s, rows, dryRun)
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count what would be moved")
	return cmd
}

// archiveView is what a pass did, or would do.
type archiveView struct {
	Source string `json:"source"`
	DryRun bool   `json:"dry_run"`
	Moved  int64  `json:"moved"`
	// PassedOver is how many were locked by somebody, or changed meanwhile.
	PassedOver int64          `json:"passed_over"`
	LookedAt   int64          `json:"looked_at"`
	Seconds    float64        `json:"seconds"`
	Tables     []archiveTable `json:"tables"`
}

type archiveTable struct {
	Table string `json:"table"`
	Moved int64  `json:"moved"`
}

// Text writes the sum and, of several tables, each.
func (v archiveView) Text(p *render.Page) {
	p.Field("source", "%s", v.Source)
	if v.DryRun {
		p.Field("would move", "%s", human.Plural(v.Moved, "row"))
	} else {
		p.Field("moved", "%s", human.Plural(v.Moved, "row"))
		p.Field("passed over", "%d", v.PassedOver)
	}
	p.Field("looked at", "%d", v.LookedAt)
	p.Field("took", "%s", human.Duration(time.Duration(v.Seconds*float64(time.Second))))
	if len(v.Tables) > 1 {
		p.Blank()
		p.Header("TABLE", "ROWS")
		for _, t := range v.Tables {
			p.Row(t.Table, human.Count(t.Moved, 0))
		}
	}
}

func (a *app) archive(ctx context.Context, s *desk.Scope, rows *store.Store, dryRun bool) (err error) {
	histories, err := wire.Histories(s.Config, rows, s.Log)
	if err != nil {
		return err
	}
	archiver, closeReplica, err := archiver(s, histories)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeReplica()) }()
	var total int64
	if !dryRun {
		if total, err = estimate(ctx, histories); err != nil {
			return err
		}
	}
	began := time.Now()
	report := &archiveProgress{app: a, began: began, told: began, total: total}
	result, failed := archiver.Pass(ctx, dryRun, report.tell)
	view := archiveView{
		Source: s.Source.Name, DryRun: dryRun, Moved: result.Moved, PassedOver: result.Skipped, LookedAt: result.Looked,
		Seconds: time.Since(began).Seconds(), Tables: []archiveTable{},
	}
	for table, n := range result.Tables {
		view.Tables = append(view.Tables, archiveTable{table.String(), n})
	}
	slices.SortFunc(view.Tables, func(a, b archiveTable) int { return cmp.Compare(a.Table, b.Table) })
	if failed != nil && ctx.Err() != nil {
		failed = exit(ExitFailed, errors.New("interrupted: what was moved is in the history, run it again for the rest"))
	}
	return errors.Join(failed, a.print(view))
}

// archiver builds an archiver for one pass.
func archiver(s *desk.Scope, histories *history.Histories) (*archive.Archiver, func() error, error) {
	source := metrics.New("").Source(s.Source.Name)
	replica, err := wire.Replica(s.Config, s.Source)
	if err != nil {
		return nil, nil, exit(ExitUsage, err)
	}
	if replica == nil {
		return wire.Archiver(s.Config, histories, nil, source, s.Log), func() error { return nil }, nil
	}
	return wire.Archiver(s.Config, histories, replica, source, s.Log), replica.Close, nil
}

// estimate tells about how many rows a pass will move.
func estimate(ctx context.Context, histories *history.Histories) (int64, error) {
	var total int64
	for _, table := range histories.Tables() {
		n, err := histories.Estimate(ctx, table)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// archiveProgress tells now and then how far a pass is.
type archiveProgress struct {
	app         *app
	began, told time.Time
	total       int64
}

const tellEvery = 2 * time.Second

func (p *archiveProgress) tell(r archive.Result) {
	now := time.Now()
	if now.Sub(p.told) < tellEvery {
		return
	}
	p.told = now
	rate := float64(r.Moved) / now.Sub(p.began).Seconds()
	line := fmt.Sprintf("%s moved, %.0f a second", human.Plural(r.Moved, "row"), rate)
	if left := p.total - r.Moved; left > 0 && rate > 0 {
		line += fmt.Sprintf(", about %s left, %s", human.Count(left, 0), human.Duration(time.Duration(float64(left)/rate*float64(time.Second))))
	}
	p.app.say("%s", line)
}
