package store

import (
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// Lane is the rows of one status that stand together in the index on (status, next_retry_time): those without a
// next_retry_time, or with Timed those that have one. Behind its columns the index has the id, so the former stand there by id,
// which is about by age, and the latter by that time. A walk along a lane touches no row of another status on the way.
type Lane struct {
	Status outbox.Status
	Timed  bool
}

// Spot is a place in a lane: behind the row of this id and next_retry_time. The zero Spot is the lane's beginning.
type Spot struct {
	ID  uint64
	Due string // the next_retry_time as the server prints it; "" in a lane of rows without one
	Set bool   // an id may be 0
}

// SpotAt returns the spot behind a row.
func SpotAt(id uint64, due string) Spot { return Spot{ID: id, Due: due, Set: true} }

// Behind renders the condition of the rows of a lane that stand behind a spot.
func (s *Store) Behind(t *Table, l Lane, at Spot) string {
	next, id := t.nextRetry(), t.Col(words.ColumnID)
	status := t.Col(words.ColumnStatus) + "=" + s.Number(l.Status) + " AND "
	switch {
	case !l.Timed && !at.Set:
		return status + next.none()
	case !l.Timed:
		return status + next.none() + " AND " + id + ">" + t.FormatID(at.ID)
	case !at.Set:
		return status + next.timed()
	}
	return status + next.notBefore(at.Due) + " AND (" + next.after(at.Due) + " OR " + id + ">" + t.FormatID(at.ID) + ")"
}

// UpTo renders the condition of a lane's rows up to the row of a spot, this one too; Behind's goes before it.
func (t *Table) UpTo(l Lane, end Spot) string {
	next, last := t.nextRetry(), t.Col(words.ColumnID)+"<="+t.FormatID(end.ID)
	if !l.Timed {
		return last
	}
	return next.notAfter(end.Due) + " AND (" + next.before(end.Due) + " OR " + last + ")"
}

// Order renders the order in which a lane's rows stand in the index.
func (t *Table) Order(l Lane) string {
	if l.Timed {
		return string(t.nextRetry()) + "," + t.Col(words.ColumnID)
	}
	return t.Col(words.ColumnID)
}
