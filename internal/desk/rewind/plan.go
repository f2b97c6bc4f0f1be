package rewind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/store"
)

// Action is how a checkpoint is to be moved, as outcomes name it.
type Action string

// The actions.
const (
	ResetToNow      Action = "reset to now"      // to the binlog's present end
	ResetToEarliest Action = "reset to earliest" // to the oldest binlog there is
	ResetToTable    Action = "reset to table"    // the position is forgotten
	Set             Action = "set"               // to a target
	Undo            Action = "undo"              // to where it was before an operator's last change
)

// Request is a move that an operator asks for.
type Request struct {
	Action Action
	// Target is where Set moves to.
	Target Target
	// Patience bounds how long the binlog in question is read to count its rows; what is not read by then is estimated.
	// 0 reads nothing.
	Patience time.Duration
}

// Move is one move of the checkpoint: what is known, what was decided, and what will follow. It is not safe for
// concurrent use. Whoever plans it closes it.
type Move struct {
	scope       *desk.Scope
	patience    time.Duration
	rows        *store.Store
	checkpoints *checkpoint.Store
	// reader is nil where the binlog can't be read, which only forgetting the position can do without.
	reader *canal.Reader
	stream canal.Config
	end    position.Position

	old     position.Position
	haveOK  bool // there is an old position and the server can go on from it
	event   string
	to      *position.Position // nil: no checkpoint
	outcome Outcome
}

// Plan decides where the checkpoint of a source moves and says what would follow. It changes nothing. An error that is
// canal.ErrCannotStream says that the source has no binlog to move in; a desk.UsageError that the source reads none.
func Plan(ctx context.Context, s *desk.Scope, rows *store.Store, wanted Request) (_ *Move, err error) {
	if s.Source.Mode == string(relay.Sweep) {
		return nil, desk.Unusable(fmt.Errorf("source %s is in mode sweep: it reads no binlog and has no checkpoint", s.Source.Name))
	}
	checkpoints, err := s.Checkpoints()
	if err != nil {
		return nil, err
	}
	m := &Move{scope: s, patience: wanted.Patience, rows: rows, checkpoints: checkpoints}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if err := m.open(ctx, wanted.Action); err != nil {
		return nil, err
	}
	if err := m.decide(ctx, wanted); err != nil {
		return nil, err
	}
	if err := m.foresee(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// Close closes what Plan has opened.
func (m *Move) Close() error {
	err := m.checkpoints.Close()
	if m.reader != nil {
		err = errors.Join(err, m.reader.Close())
	}
	return err
}

// Outcome returns what would follow or, after Apply, what was done.
func (m *Move) Outcome() Outcome { return m.outcome }

// open reads what is there now.
func (m *Move) open(ctx context.Context, action Action) error {
	now, err := desk.LoadCheckpoint(ctx, m.checkpoints, m.scope.Source.Name)
	if err != nil {
		return err
	}
	m.outcome = Outcome{Source: m.scope.Source.Name, Action: string(action), Old: now.Position, OldProblem: now.Problem}
	m.outcome.Leader = m.scope.Leader(ctx, m.rows, m.checkpoints)
	if m.outcome.Rows, err = desk.CountRows(ctx, m.rows); err != nil {
		return err
	}
	if m.stream, err = wire.Stream(m.scope.Config, m.scope.Source); err != nil {
		return desk.Unusable(err)
	}
	log := m.scope.Log
	if log.GetLevel() == zerolog.WarnLevel {
		log = log.Level(zerolog.ErrorLevel) // that a connection is lost while reading is in the error that ends it
	}
	m.reader, err = canal.Open(ctx, m.stream, log, nil)
	if err != nil {
		m.reader = nil
		if action == ResetToTable {
			m.outcome.Follows = append(m.outcome.Follows, "The binlog can't be read, so what the stream would have brought is not counted: "+err.Error())
			return nil
		}
		return err
	}
	if m.end, err = m.reader.End(ctx); err != nil {
		return err
	}
	if now.Position != nil {
		m.old = now.Position.At()
		start, err := m.reader.Resolve(ctx, m.old, true, canal.StartNow)
		if err != nil {
			return err
		}
		m.haveOK = start.Usable
		if !start.Usable {
			m.outcome.OldProblem = fmt.Sprintf("the server can't go on from it (%s): %s", start.Recovery, start.Detail)
		}
	}
	return nil
}

func (m *Move) decide(ctx context.Context, wanted Request) error {
	switch wanted.Action {
	case Set:
		return m.set(ctx, wanted.Target)
	case Undo:
		return m.undo(ctx)
	case ResetToNow, ResetToEarliest, ResetToTable:
		return m.reset(ctx, wanted.Action)
	}
	return desk.Unusable(fmt.Errorf("there is no action %q", wanted.Action))
}
