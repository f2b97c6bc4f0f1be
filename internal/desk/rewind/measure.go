package rewind

import (
	"context"
	"errors"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/desk"
)

// foresee counts what lies between the positions.
func (m *Move) foresee(ctx context.Context) error {
	from, until := m.old, m.end
	switch {
	case m.reader == nil, m.to == nil && !m.haveOK:
		m.foretell()
		return nil
	case m.to == nil:
	case m.outcome.Direction == string(Forward):
		until = *m.to
	default:
		from = *m.to
		if m.haveOK && m.outcome.Direction == string(Back) {
			until = m.old
		}
	}
	readable := m.haveOK || m.outcome.Direction != string(Forward)
	if m.outcome.Binlog != nil && !m.outcome.Binlog.Usable && from == *m.to {
		readable = false
	}
	if readable && m.patience > 0 && m.outcome.Direction != string(Same) {
		if err := m.measure(ctx, from, until); err != nil {
			return err
		}
	}
	m.foretell()
	return nil
}

// measure reads the stretch for as long as it may.
func (m *Move) measure(ctx context.Context, from, until position.Position) error {
	whole, err := canal.BinlogDistance(ctx, m.stream, from)
	if err != nil {
		return err
	}
	rest, err := canal.BinlogDistance(ctx, m.stream, until)
	if err != nil {
		return err
	}
	if whole.BytesBehind <= rest.BytesBehind { // nothing lies between: no event would come to end the reading
		m.outcome.Range = &Stretch{From: desk.PositionOf(from), Until: desk.PositionOf(until)}
		return nil
	}
	patience, stop := context.WithTimeout(ctx, m.patience)
	defer stop()
	if err := m.reader.Stream(patience, from); err != nil {
		return err
	}
	count, err := Read(ctx, patience, m.reader, m.rows, until)
	if lost, ok := errors.AsType[*canal.PositionLost](err); ok {
		return cannotGoOn(lost.Reason, lost.Detail)
	}
	if err != nil {
		return err
	}
	r := &Stretch{From: desk.PositionOf(from), Until: desk.PositionOf(until), Bytes: whole.BytesBehind - min(whole.BytesBehind, rest.BytesBehind)}
	if !count.Complete {
		r.Estimate = true
		stopped := until
		stopped.File, stopped.Pos, stopped.GTID = count.Stopped.File, count.Stopped.Pos, ""
		behind := whole
		if stopped.File != "" {
			if behind, err = canal.BinlogDistance(ctx, m.stream, stopped); err != nil {
				return err
			}
		}
		r.BytesRead = whole.BytesBehind - min(whole.BytesBehind, behind.BytesBehind)
		count = count.Scale(r.BytesRead, r.Bytes)
	} else {
		r.BytesRead = r.Bytes
	}
	r.Rows, r.Settled, r.Open, r.Gone, r.Missed = count.Rows, count.Settled, count.Open, count.Gone, count.Missed
	m.outcome.Range = r
	return nil
}
