package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/store"
)

// outsideView is what can be known of the sources while no relay answers.
type outsideView struct {
	Running bool            `json:"running"`
	Sources []outsideSource `json:"sources"`
}

type outsideSource struct {
	Name       string          `json:"name"`
	Leader     leaderView      `json:"leader"`
	Checkpoint *checkpointView `json:"checkpoint,omitempty"`
	Rows       *countsView     `json:"rows,omitempty"`
	Problems   []string        `json:"problems,omitempty"`
}

// Text writes the screen.
func (v outsideView) Text(p *render.Page) {
	for i, s := range v.Sources {
		if i > 0 {
			p.Blank()
		}
		p.Field("source", "%s", s.Name)
		s.Leader.text(p)
		if s.Checkpoint != nil {
			s.Checkpoint.brief(p)
		}
		if s.Rows != nil {
			s.Rows.text(p)
		}
		for _, problem := range s.Problems {
			p.Field("problem", "%s", problem)
		}
	}
}

// outsideTimeout bounds what is asked of each source.
const outsideTimeout = 15 * time.Second

// outside looks at the sources from outside. It fails only when nothing at all could be learnt.
func (a *app) outside(ctx context.Context, c *config.Config, chosen []config.Source) error {
	view := outsideView{}
	known := false
	for _, source := range chosen {
		s := &scope{config: c, source: source, log: a.quiet(c)}
		one := s.look(ctx)
		known = known || one.Checkpoint != nil || one.Rows != nil
		view.Sources = append(view.Sources, one)
	}
	err := a.print(view)
	if err == nil && !known {
		err = errors.New("neither the relay nor its database nor its Redis could be asked; outbox-relay doctor says what is wrong")
	}
	return err
}

func (s *scope) look(ctx context.Context) outsideSource {
	ctx, cancel := context.WithTimeout(ctx, outsideTimeout)
	defer cancel()
	one := outsideSource{Name: s.source.Name}
	note := func(err error) {
		if err != nil {
			one.Problems = append(one.Problems, err.Error())
		}
	}
	checkpoints, err := s.checkpoints()
	if err != nil {
		note(err)
		return one
	}
	defer func() { note(checkpoints.Close()) }()
	rows, err := s.rows(ctx)
	if err != nil {
		note(err)
	} else {
		defer func() { note(rows.Close()) }()
		one.Rows, err = readCounts(ctx, rows)
		note(err)
	}
	one.Leader = s.leader(ctx, rows, checkpoints)
	one.Checkpoint, err = s.readCheckpoint(ctx, checkpoints)
	note(err)
	return one
}

// countsView is how many rows have which status.
type countsView struct {
	Pending              int64   `json:"pending"`
	Failed               int64   `json:"failed"`
	Dead                 int64   `json:"dead"`
	OldestPendingSeconds float64 `json:"oldest_pending_seconds"`
	// Cap is where counting stops, for each table: more is "that many or more".
	Cap int64 `json:"counted_up_to"`
}

func readCounts(ctx context.Context, rows *store.Store) (*countsView, error) {
	stats, err := rows.Stats(ctx)
	if err != nil {
		return nil, fmt.Errorf("count the rows: %w", err)
	}
	v := &countsView{Cap: store.CountCap}
	for _, t := range stats.Tables {
		v.add(t)
	}
	return v, nil
}

func (v *countsView) text(p *render.Page) {
	p.Field("rows", "%s pending, %s failed, %s dead", render.Count(v.Pending, v.Cap), render.Count(v.Failed, v.Cap), render.Count(v.Dead, v.Cap))
	if v.OldestPendingSeconds > 0 {
		p.Field("oldest pending", "%s", seconds(v.OldestPendingSeconds))
	}
}

// readCheckpoint returns the saved checkpoint and what the server says about its position. No checkpoint is a result.
func (s *scope) readCheckpoint(ctx context.Context, checkpoints *checkpoint.Store) (*checkpointView, error) {
	view, err := loadCheckpoint(ctx, checkpoints, s.source.Name)
	if err != nil {
		return nil, err
	}
	if view.Position != nil && s.source.Mode != "sweep" {
		view.Binlog = s.binlog(ctx, view.Position.position())
	}
	return view, nil
}
