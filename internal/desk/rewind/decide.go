package rewind

import (
	"context"
	"fmt"
	"time"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/desk"
)

// reset decides about a place with a name.
func (m *Move) reset(ctx context.Context, to Action) error {
	m.event = checkpoint.EventReset
	switch to {
	case ResetToTable:
		m.outcome.Direction = string(Forward)
		return nil
	case ResetToEarliest:
		start, err := m.reader.Resolve(ctx, position.Position{}, false, canal.StartEarliest)
		if err != nil {
			return err
		}
		return m.moveTo(ctx, start.Position, false)
	default:
		return m.moveTo(ctx, m.end, false)
	}
}

// set decides about a position.
func (m *Move) set(ctx context.Context, target Target) error {
	m.event = checkpoint.EventSet
	wanted := target.On(m.end)
	start, err := m.reader.Resolve(ctx, wanted, true, canal.StartNow)
	if err != nil {
		return err
	}
	if !start.Usable {
		return cannotGoOn(start.Recovery, start.Detail)
	}
	return m.moveTo(ctx, start.Position, target.GTID != "")
}

// undo decides about what was there before.
func (m *Move) undo(ctx context.Context) error {
	m.event = checkpoint.EventUndo
	entries, err := m.checkpoints.History(ctx, m.scope.Source.Name, historyDepth)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Event {
		case checkpoint.EventSet, checkpoint.EventReset, checkpoint.EventUndo:
			m.outcome.Action = fmt.Sprintf("undo the %s of %s by %s", e.Event, e.At.UTC().Format(time.RFC3339), e.By)
			if !e.Old.Present || e.Old.Position.IsZero() {
				m.outcome.Direction = string(Forward)
				return nil
			}
			return m.moveTo(ctx, e.Old.Position, false)
		}
	}
	return fmt.Errorf("source %s: %w", m.scope.Source.Name, checkpoint.ErrNothingToUndo)
}

// historyDepth is how far back an undo looks: as far as the history goes.
const historyDepth = 1000

// moveTo notes the new position and which way it lies.
func (m *Move) moveTo(ctx context.Context, to position.Position, bySet bool) error {
	m.to, m.outcome.New = &to, desk.PositionOf(to)
	switch {
	case m.haveOK:
		m.outcome.Direction = string(Between(m.old, to, bySet))
	case to == m.end:
		m.outcome.Direction = string(Forward)
	default:
		m.outcome.Direction = string(Back)
	}
	d, err := canal.BinlogDistance(ctx, m.stream, to)
	if err != nil {
		return err
	}
	m.outcome.Binlog = desk.BinlogOf(d)
	return nil
}

// cannotGoOn refuses a position.
func cannotGoOn(reason, detail string) error {
	return fmt.Errorf("the server can't go on from there (%s): %s; look at SHOW BINARY LOGS, or use checkpoint reset --to table", reason, detail)
}
