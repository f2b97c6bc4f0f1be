package desk

import (
	"context"
	"slices"
	"time"
)

// Outside is what can be known of the sources while no relay answers.
type Outside struct {
	Running bool            `json:"running"`
	Sources []OutsideSource `json:"sources"`
}

// OutsideSource is one of them. What could not be asked is nil, and Problems says why.
type OutsideSource struct {
	Name       string      `json:"name"`
	Leader     Leader      `json:"leader"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Rows       *Counts     `json:"rows,omitempty"`
	Problems   []string    `json:"problems,omitempty"`
}

// outsideTimeout bounds what is asked of each source.
const outsideTimeout = 15 * time.Second

// LookOutside asks the servers of each source about it, one source after the other, for 15 seconds each at most.
func LookOutside(ctx context.Context, sources []*Scope) Outside {
	view := Outside{}
	for _, s := range sources {
		view.Sources = append(view.Sources, s.look(ctx))
	}
	return view
}

// Known reports whether anything at all could be learnt.
func (v Outside) Known() bool {
	return slices.ContainsFunc(v.Sources, func(one OutsideSource) bool { return one.Checkpoint != nil || one.Rows != nil })
}

func (s *Scope) look(ctx context.Context) OutsideSource {
	ctx, cancel := context.WithTimeout(ctx, outsideTimeout)
	defer cancel()
	one := OutsideSource{Name: s.Source.Name}
	note := func(err error) {
		if err != nil {
			one.Problems = append(one.Problems, err.Error())
		}
	}
	checkpoints, err := s.Checkpoints()
	if err != nil {
		note(err)
		return one
	}
	defer func() { note(checkpoints.Close()) }()
	rows, err := s.Rows(ctx)
	if err != nil {
		note(err)
	} else {
		defer func() { note(rows.Close()) }()
		one.Rows, err = CountRows(ctx, rows)
		note(err)
	}
	one.Leader = s.Leader(ctx, rows, checkpoints)
	one.Checkpoint, err = s.ReadCheckpoint(ctx, checkpoints)
	note(err)
	return one
}
