package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// NextDue returns when the nearest pending or failed row that is not due yet becomes due, as a time of the local clock
// that carries the monotonic reading; false when there is none. Rows that are due already do not count: a closed topic
// may have a million of them. So ask before reading the candidates of the same round, and a row that becomes due in
// between is in neither gap.
func (s *Store) NextDue(ctx context.Context) (time.Time, bool, error) {
	var nearest time.Time
	for _, table := range s.Tables() {
		for _, status := range []outbox.Status{outbox.Pending, outbox.Failed} {
			due, ok, err := s.nextDue(ctx, table.Table, status)
			if unlessGone(err) != nil {
				return time.Time{}, false, err
			}
			if ok && (nearest.IsZero() || due.Before(nearest)) {
				nearest = due
			}
		}
	}
	return nearest, !nearest.IsZero(), nil
}

func (s *Store) nextDue(ctx context.Context, name outbox.Table, status outbox.Status) (time.Time, bool, error) {
	var due time.Time
	err := s.OnTable(ctx, s.work, "find the next due row of", name, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		var micros sql.NullInt64
		err := conn.QueryRowContext(ctx, s.nextDueQuery(t, status)).Scan(&micros)
		if errors.Is(err, sql.ErrNoRows) {
			due = time.Time{}
			return nil
		}
		// A partial date has no distance; such a row is found by the sweep after the next.
		if micros.Valid {
			due = time.Now().Add(time.Duration(max(micros.Int64, 0)) * time.Microsecond)
		}
		return err
	})
	return due, !due.IsZero(), err
}

func (s *Store) nextDueQuery(t *Table, status outbox.Status) string {
	next := t.nextRetry()
	return fmt.Sprintf("SELECT TIMESTAMPDIFF(MICROSECOND, NOW(6), %s) FROM %s%s WHERE %s=%s AND %s ORDER BY %s LIMIT 1",
		next, t.From(), t.ByDue(), t.Col(words.ColumnStatus), s.Number(status), next.ahead(), next)
}

// Defer gives pending rows to the sweeper: they are due now, and the stream has done with them. Their retry_count stays.
func (s *Store) Defer(ctx context.Context, refs []outbox.Ref) error {
	return s.due(ctx, "defer rows of", refs, s.Number(outbox.Pending))
}

// Release gives claimed rows back before their lease is over: they are due now.
func (s *Store) Release(ctx context.Context, refs []outbox.Ref) error {
	return s.due(ctx, "release rows of", refs, s.open())
}

func (s *Store) due(ctx context.Context, op string, refs []outbox.Ref, from string) error {
	_, err := s.Update(ctx, s.marks, op, refs, from, func(t *Table) string { return t.nextRetry().set(dueNow) })
	return err
}
