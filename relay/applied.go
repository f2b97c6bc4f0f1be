package relay

import (
	"context"

	"example.com/outbox-relay/canal/position"
)

// Where the binlog is read from a replica that lags, rows that are in the table already are still to come in the stream. When
// the saved position is of no use they may have been sent long ago, or have just been recorded as the sweeper's. So the
// replay window, in which the table is asked about each row, is then kept open until the replica has applied what the
// primary had at the start.

// untilApplied closes the window at the replica's end once it has applied all of that.
func (s *session) untilApplied(ctx context.Context, upstream Upstream) error {
	window := s.pump.replay
	if !window.waits {
		return nil
	}
	err := persist(ctx, s.log, "wait until the replica has applied what was committed before the start", func(ctx context.Context) error {
		return upstream.Applied(ctx)
	})
	if err != nil {
		return err
	}
	var end position.Position
	err = persist(ctx, s.log, "read the replica's binlog end", func(ctx context.Context) (err error) {
		end, err = s.reader.End(ctx)
		return err
	})
	if err != nil {
		return err
	}
	window.applied.Store(&end)
	return nil
}

// bound returns where the window ends; ok is false while that is not known.
func (r *replay) bound() (until position.Position, ok bool) {
	if !r.waits {
		return r.until, true
	}
	if p := r.applied.Load(); p != nil {
		return *p, true
	}
	return position.Position{}, false
}
