package store

import (
	"context"

	"example.com/outbox-relay/outbox"
)

// Defer gives pending rows to the sweeper: they are due now, and the stream has done with them. Their retry_count stays.
func (s *Store) Defer(ctx context.Context, refs []outbox.Ref) error {
	return s.due(ctx, "defer rows of", refs, s.numberText(outbox.Pending))
}

// Release gives claimed rows back before their lease is over: they are due now.
func (s *Store) Release(ctx context.Context, refs []outbox.Ref) error {
	return s.due(ctx, "release rows of", refs, s.open())
}

func (s *Store) due(ctx context.Context, op string, refs []outbox.Ref, from string) error {
	_, err := s.update(ctx, s.marks, op, refs, from, func(t *Table) string { return t.col("next_retry_time") + "=NOW()" })
	return err
}
