package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/wire"
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
			return a.withCheckpoints(func(s *scope, checkpoints *checkpoint.Store) error {
				view, err := s.readCheckpoint(cmd.Context(), checkpoints)
				if err != nil {
					return err
				}
				return a.print(view)
			})
		},
	}
	cmd.AddCommand(show, a.historyCommand(), a.resetCommand(), a.setCommand(), a.undoCommand())
	return cmd
}

// positionView is a position in JSON.
type positionView struct {
	Server string `json:"server"`
	Flavor string `json:"flavor"`
	File   string `json:"file"`
	Pos    uint64 `json:"pos"`
	GTID   string `json:"gtid,omitempty"`
}

func viewOf(p position.Position) *positionView {
	return &positionView{Server: p.Server, Flavor: p.Flavor, File: p.File, Pos: p.Pos, GTID: p.GTID}
}

func (v *positionView) position() position.Position {
	return position.Position{Server: v.Server, Flavor: v.Flavor, File: v.File, Pos: v.Pos, GTID: v.GTID}
}

// String returns file:pos, or the GTID set of a position that has no place.
func (v *positionView) String() string {
	switch {
	case v == nil:
		return "none"
	case v.File == "":
		return render.Cut(v.GTID, 60)
	}
	return v.position().String()
}

// checkpointView is a saved checkpoint.
type checkpointView struct {
	Source     string        `json:"source"`
	Present    bool          `json:"present"`
	Problem    string        `json:"problem,omitempty"`
	Position   *positionView `json:"position,omitempty"`
	Epoch      int64         `json:"epoch,omitempty"`
	SavedAt    time.Time     `json:"saved_at,omitzero"`
	AgeSeconds float64       `json:"age_seconds,omitempty"`
	By         string        `json:"by,omitempty"`
	// Partitions is for how many partitions it says where the messages behind it begin.
	Partitions int         `json:"partitions,omitempty"`
	Binlog     *binlogView `json:"binlog,omitempty"`
}

// loadCheckpoint reads the record. That there is none, or a broken one, is a result as well.
func loadCheckpoint(ctx context.Context, checkpoints *checkpoint.Store, source string) (*checkpointView, error) {
	rec, err := checkpoints.Load(ctx, source)
	view := &checkpointView{Source: source}
	switch {
	case errors.Is(err, checkpoint.ErrBroken), errors.Is(err, checkpoint.ErrNewer):
		view.Present, view.Problem = true, err.Error()
		return view, nil
	case errors.Is(err, checkpoint.ErrNone):
		view.Problem = err.Error()
		return view, nil
	case err != nil:
		return nil, err
	}
	view.Present, view.Position = true, viewOf(rec.Position)
	view.Epoch, view.SavedAt, view.By = rec.Epoch, rec.SavedAt, rec.By
	view.AgeSeconds = render.Seconds(time.Since(rec.SavedAt))
	for _, partitions := range rec.Offsets {
		view.Partitions += len(partitions)
	}
	return view, nil
}

// Text writes it all.
func (v *checkpointView) Text(p *render.Page) {
	p.Field("source", "%s", v.Source)
	v.brief(p)
	if v.Position == nil {
		return
	}
	p.Field("server", "%s (%s)", v.Position.Server, v.Position.Flavor)
	p.Field("gtid", "%s", v.Position.GTID)
	p.Field("epoch", "%d", v.Epoch)
	p.Field("kafka", "offsets of %s", render.Plural(int64(v.Partitions), "partition"))
}

// brief writes what matters most.
func (v *checkpointView) brief(p *render.Page) {
	if v.Position == nil {
		p.Field("checkpoint", "%s", v.Problem)
		return
	}
	p.Field("checkpoint", "%s", v.Position)
	p.Field("saved", "%s ago by %s", seconds(v.AgeSeconds), v.By)
	if v.Binlog != nil {
		v.Binlog.text(p)
	}
}

// binlogView is what the server says about a position.
type binlogView struct {
	Usable      bool   `json:"usable"`
	Recovery    string `json:"recovery,omitempty"`
	Detail      string `json:"detail,omitempty"`
	FileExists  bool   `json:"file_exists"`
	BytesBehind uint64 `json:"bytes_behind"`
	FilesBehind int    `json:"files_behind"`
	// SecondsBehind is the age of the first event behind the position, 0 when nothing is.
	SecondsBehind    *float64 `json:"seconds_behind,omitempty"`
	RetentionSeconds float64  `json:"retention_seconds"`
	// PurgedInHours is left out when it can't be told.
	PurgedInHours *float64      `json:"purged_in_hours,omitempty"`
	End           *positionView `json:"end,omitempty"`
	Problem       string        `json:"problem,omitempty"`
}

// binlog asks the server whose binlog is read. That it can't be asked is a result.
func (s *scope) binlog(ctx context.Context, from position.Position) *binlogView {
	cfg, err := wire.Stream(s.config, s.source)
	if err != nil {
		return &binlogView{Problem: err.Error()}
	}
	d, err := canal.BinlogDistance(ctx, cfg, from)
	if err != nil {
		return &binlogView{Problem: err.Error()}
	}
	view := binlogOf(d)
	if !d.Usable {
		return view
	}
	behind := 0.0
	at, ok, err := canal.NextEvent(ctx, cfg, from)
	if err != nil {
		view.Problem = fmt.Sprintf("how old it is can't be told: %s", err)
		return view
	}
	if ok {
		behind = max(render.Seconds(time.Since(at).Round(time.Second)), 0)
	}
	view.SecondsBehind = &behind
	return view
}

func binlogOf(d canal.Distance) *binlogView {
	view := &binlogView{
		Usable: d.Usable, Recovery: d.Recovery, Detail: d.Detail, FileExists: d.FileExists, BytesBehind: d.BytesBehind,
		FilesBehind: d.FilesBehind, RetentionSeconds: render.Seconds(d.Retention), End: viewOf(d.End),
	}
	if d.KnownPurge {
		hours := float64(int(d.PurgedIn.Hours()*10)) / 10
		view.PurgedInHours = &hours
	}
	return view
}

func (v *binlogView) text(p *render.Page) {
	if v.End == nil {
		p.Field("binlog", "%s", v.Problem)
		return
	}
	p.Field("binlog exists", "%s", render.YesNo(v.FileExists))
	if !v.Usable {
		p.Field("usable", "no (%s): %s", v.Recovery, v.Detail)
		return
	}
	behind := fmt.Sprintf("%s in %s more", render.Bytes(v.BytesBehind), render.Plural(int64(v.FilesBehind), "file"))
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
