package relay

import (
	"context"
	"errors"
	"time"

	"example.com/outbox-relay/sweeper"
)

// watermark is how the sweeper learns that the stream has passed what the table shows (sweeper.Stream).
type watermark struct {
	check    func() error // an error when nothing may be sent any more
	reader   Reader
	tracker  *Tracker
	upstream Upstream
}

// Upstream relates the server where rows are marked to the one whose binlog is read, when they are not the same.
type Upstream interface {
	// Applied returns nil once the replica has applied everything that the primary had committed at the call.
	Applied(ctx context.Context) error
}

// passedTimeout is how long a sweep waits for the stream. A stream that lags longer is no reason to send.
const passedTimeout = 10 * time.Second

// Passed reads the server's binlog end, after the caller has read the table, and waits until everything up to there is
// settled. That is sound because a transaction is in the binlog before its rows can be read.
func (w *watermark) Passed(ctx context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	return w.reach(ctx, passedTimeout, w.tracker.WaitSettled)
}

// Admitted waits until the pump has given everything up to the server's present binlog end to the gate, which may hold it.
func (w *watermark) Admitted(ctx context.Context) error {
	return w.reach(ctx, holdAtMost, w.tracker.WaitAdmitted)
}

// reach reads the binlog's end and waits for it, but not longer than limit.
func (w *watermark) reach(ctx context.Context, limit time.Duration, wait func(context.Context, string, uint64) error) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := w.end(bounded, wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return sweeper.ErrBehind
	}
	return err
}

func (w *watermark) end(ctx context.Context, wait func(context.Context, string, uint64) error) error {
	if w.upstream != nil {
		if err := w.upstream.Applied(ctx); err != nil {
			return err
		}
	}
	end, err := w.reader.End(ctx)
	if err != nil {
		return err
	}
	return wait(ctx, end.File, end.Pos)
}

// noStream is the watermark where no binlog is read: the table is all there is.
type noStream struct{ check func() error }

// Passed returns at once.
func (n noStream) Passed(context.Context) error { return n.check() }

// Admitted returns at once: nothing is held.
func (noStream) Admitted(context.Context) error { return nil }
