package relay

import (
	"context"

	"example.com/outbox-relay/outbox"
)

// recordBatch is how many rows are deferred at once.
const recordBatch = 1000

// record defers every row that was pending when the stream started at the binlog's present end. Until that is done
// the position is not saved, because it would cover rows that nothing but a lucky sweep remembers, and the topics of those rows are not
// drained, because a drain goes by the deferred rows. Rows that are committed meanwhile may be deferred too; that costs an
// UPDATE and does no harm.
func (s *session) record(ctx context.Context, rows Backlog) error {
	var last map[outbox.Table]uint64
	err := persist(ctx, s.log, "read the last ids", func(ctx context.Context) (err error) {
		last, err = rows.LastIDs(ctx)
		return err
	})
	total := 0
	for err == nil {
		n := 0
		err = persist(ctx, s.log, "record pending rows", func(ctx context.Context) error {
			refs, err := rows.Unrecorded(ctx, last, recordBatch)
			n = len(refs)
			if err != nil || n == 0 {
				return err
			}
			return rows.Defer(ctx, refs)
		})
		total += n
		if err == nil && n == 0 {
			s.recovery.left(total)
			s.recorded(total)
			return nil
		}
	}
	return err
}

func (s *session) recorded(rows int) {
	s.flow.lines.Recorded()
	if s.saver != nil {
		s.saver.release()
	}
	s.alarm.Kick()
	s.recovery.finish()
	if rows > 0 {
		s.log.Info().Int("count", rows).Msg("pending rows from before the start are left to the sweeper")
	}
}
