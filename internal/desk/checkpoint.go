package desk

import (
	"context"
	"errors"
	"time"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/relay"
)

// Position is a place in the binlog as results show it.
type Position struct {
	Server string `json:"server"`
	Flavor string `json:"flavor"`
	File   string `json:"file"`
	Pos    uint64 `json:"pos"`
	GTID   string `json:"gtid,omitempty"`
}

// PositionOf shows a position.
func PositionOf(p position.Position) *Position {
	return &Position{Server: p.Server, Flavor: p.Flavor, File: p.File, Pos: p.Pos, GTID: p.GTID}
}

// At returns the position that is shown.
func (v *Position) At() position.Position {
	return position.Position{Server: v.Server, Flavor: v.Flavor, File: v.File, Pos: v.Pos, GTID: v.GTID}
}

// String returns file:pos, or the GTID set of a position that has no place.
func (v *Position) String() string {
	switch {
	case v == nil:
		return "none"
	case v.File == "":
		return human.Cut(v.GTID, 60)
	}
	return v.At().String()
}

// Checkpoint is a saved checkpoint.
type Checkpoint struct {
	Source     string    `json:"source"`
	Present    bool      `json:"present"`
	Problem    string    `json:"problem,omitempty"`
	Position   *Position `json:"position,omitempty"`
	Epoch      int64     `json:"epoch,omitempty"`
	SavedAt    time.Time `json:"saved_at,omitzero"`
	AgeSeconds float64   `json:"age_seconds,omitempty"`
	By         string    `json:"by,omitempty"`
	// Partitions is for how many partitions it says where the messages behind it begin.
	Partitions int     `json:"partitions,omitempty"`
	Binlog     *Binlog `json:"binlog,omitempty"`
}

// LoadCheckpoint reads the record. That there is none, or a broken one, is a result as well.
func LoadCheckpoint(ctx context.Context, checkpoints *checkpoint.Store, source string) (*Checkpoint, error) {
	rec, err := checkpoints.Load(ctx, source)
	view := &Checkpoint{Source: source}
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
	view.Present, view.Position = true, PositionOf(rec.Position)
	view.Epoch, view.SavedAt, view.By = rec.Epoch, rec.SavedAt, rec.By
	view.AgeSeconds = human.Seconds(time.Since(rec.SavedAt))
	for _, partitions := range rec.Offsets {
		view.Partitions += len(partitions)
	}
	return view, nil
}

// ReadCheckpoint returns the saved checkpoint and what the server says about its position. No checkpoint is a result.
func (s *Scope) ReadCheckpoint(ctx context.Context, checkpoints *checkpoint.Store) (*Checkpoint, error) {
	view, err := LoadCheckpoint(ctx, checkpoints, s.Source.Name)
	if err != nil {
		return nil, err
	}
	if view.Position != nil && s.Source.Mode != string(relay.Sweep) {
		view.Binlog = s.binlog(ctx, view.Position.At())
	}
	return view, nil
}
