package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/sweeper"
)

// ErrLed tells that another process leads the source, which sweeps by itself.
var ErrLed = errors.New("another relay leads the source")

// SweepOnce takes the source's lock, waiting for it no longer than wait, sends everything that is due in the table,
// as a relay in mode sweep does, and gives the lock back. The binlog is not read and the checkpoint not moved: a
// stream that starts later finds the rows sent. limit is called between two rounds with what has been done; it ends
// the sweep by returning true. ErrLed when the lock is not to be had.
func (r *Relay) SweepOnce(ctx context.Context, wait time.Duration, limit func(sweeper.Result) bool) (result sweeper.Result, err error) {
	waiting, giveUp := context.WithTimeout(ctx, wait)
	held, err := r.deps.Lock.Acquire(waiting)
	giveUp()
	switch {
	case ctx.Err() != nil:
		return result, ctx.Err()
	case err != nil && errors.Is(err, context.DeadlineExceeded):
		return result, ErrLed
	case err != nil:
		return result, fmt.Errorf("acquire the leader's lock: %w", err)
	}
	defer func() {
		release, done := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout) // released while stopping, too
		defer done()
		err = errors.Join(err, held.Release(release))
	}()
	leading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-held.Lost():
			cancel(ErrLockLost)
		case <-leading.Done():
		}
	})
	result, err = r.sweepOnce(leading, held, limit)
	if cause := context.Cause(leading); errors.Is(cause, ErrLockLost) {
		err = errors.Join(cause, err)
	}
	cancel(nil)
	watch.Wait()
	return result, err
}

func (r *Relay) sweepOnce(ctx context.Context, held Held, limit func(sweeper.Result) bool) (sweeper.Result, error) {
	l := &leadership{relay: r, held: held, log: r.log}
	rec, err := r.deps.Checkpoints.Load(ctx, r.cfg.Source)
	switch {
	case err == nil:
		l.offsets, l.savedAt = rec.Offsets, rec.SavedAt
	case !errors.Is(err, checkpoint.ErrNone):
		r.log.Warn().Err(err).Msg("checkpoint not read: what was sent before a crash and not marked may be sent twice")
	}
	work, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s, err := l.sweepOnly(ctx, fail, true)
	if err != nil {
		return sweeper.Result{}, err
	}
	return s.passes(ctx, work, limit)
}

// passes sweeps until nothing is left to do at once, and brings what is on its way to its end.
func (s *session) passes(ctx, work context.Context, limit func(sweeper.Result) bool) (total sweeper.Result, err error) {
	marking, abandonMarks := context.WithCancel(context.WithoutCancel(ctx)) // what was acked is marked, also while stopping
	defer abandonMarks()
	var marker sync.WaitGroup
	marker.Go(func() { s.ended("mark", s.flow.marker.run(marking)) })
	s.recorded(0)
	var loop sync.WaitGroup
	ended := make(chan struct{})
	loop.Go(func() {
		defer close(ended)
		for work.Err() == nil && err == nil {
			var r sweeper.Result
			r, err = s.sweeper.Pass(work)
			total.Sent, total.Failed, total.Dead = total.Sent+r.Sent, total.Failed+r.Failed, total.Dead+r.Dead
			if !r.More || limit(total) {
				return
			}
		}
	})
	// A pass that waits for results ends only when the producer is closed.
	select {
	case <-ended:
	case <-work.Done():
	}
	cause := context.Cause(work) // nil when nothing but the passes has ended
	s.fail(nil)
	drained := s.drain(ctx, cause, loop.Wait, func() { s.flow.marker.finish(); marker.Wait() }, abandonMarks)
	return total, errors.Join(err, cause, drained)
}
