package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
)

// leadership is the time during which this process holds the source's lock: one epoch, one or more sessions.
type leadership struct {
	relay *Relay
	held  Held
	epoch int64
	log   zerolog.Logger

	resume
	claimed bool // a dead process may have published rows that it had claimed
	// unrecorded: the last session ended before it had recorded what was pending at its start, so the next one has to.
	unrecorded bool
	leftAt     time.Time // when a session last ended because of rows that it left to the sweeper
	stalled    []string  // the topics because of which the last session ended
}

// resume is from where the next session starts: the loaded checkpoint, later what the last session left.
type resume struct {
	have    bool
	broken  string // the checkpoint is nonsense: why
	lost    string // there is none, although there was one: why
	pos     position.Position
	offsets map[string]map[int32]int64
	savedAt time.Time
}

var (
	// ErrLockLost ends a leadership: somebody else may hold the lock.
	ErrLockLost = errors.New("the leader's lock is lost")
	// errStreamable ends a session that only sweeps, because the binlog can be read now.
	errStreamable = errors.New("the binlog can be streamed now")
)

// lead does the leader's work until ctx ends, the lock is lost, or going on would be wrong.
func (r *Relay) lead(ctx context.Context, held Held) error {
	l := &leadership{relay: r, held: held, log: r.log}
	if err := l.load(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // told to stop before anything was begun
		}
		return err
	}
	backoff := retry.Doubling(200*time.Millisecond, 10*time.Second).Attempts()
	for failures := 0; ; failures++ {
		began := time.Now()
		err := l.session(ctx)
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, checkpoint.ErrFenced), errors.Is(err, ErrLockLost):
			return err
		case errors.Is(err, canal.ErrCannotStream) && r.cfg.Mode == Stream:
			return err
		}
		if time.Since(began) > time.Minute {
			backoff.Reset()
			failures = 0
		}
		l.report(err, failures)
		if retry.Wait(ctx, backoff.Next()) != nil {
			return nil //nolint:nilerr // it was told already; stopping while waiting is a clean stop
		}
	}
}

// logEvery is how many failures in a row are told once.
const logEvery = 20

// report tells why a session ended, but not each time that the next one can't begin either.
func (l *leadership) report(err error, failures int) {
	l.relay.note(err)
	event := l.log.Debug()
	switch {
	case errors.Is(err, errStreamable):
		event = l.log.Info()
	case errors.Is(err, errLeft):
		event = l.log.Warn()
	case failures%logEvery == 0:
		event = l.log.Error().Int("failures", failures+1)
	}
	event.Err(err).Msg("session ended, starts again from the safe position")
}

// check returns ErrLockLost when the lock is not surely held any more. It is asked before anything that only the
// leader may do, so that a process which was stopped for a while does none of it when it wakes.
func (l *leadership) check() error {
	if !l.held.Valid() {
		return ErrLockLost
	}
	return nil
}

// load takes a new epoch and reads the checkpoint. Redis is waited for: an unreadable checkpoint is never taken for
// none.
func (l *leadership) load(ctx context.Context) error {
	r := l.relay
	r.setRole(RoleStarting)
	var rec checkpoint.Record
	err := persist(ctx, l.log, "read the checkpoint", func(ctx context.Context) (err error) {
		defer func() { r.note(err) }()
		epoch, err := r.deps.Checkpoints.NextEpoch(ctx, r.cfg.Source)
		if errors.Is(err, checkpoint.ErrNewer) {
			return retry.Final(err)
		}
		if err != nil {
			return err
		}
		l.epoch = epoch
		rec, err = r.deps.Checkpoints.Load(ctx, r.cfg.Source)
		switch {
		case errors.Is(err, checkpoint.ErrLost):
			l.lost = err.Error()
			return nil
		case errors.Is(err, checkpoint.ErrNone):
			return nil
		case errors.Is(err, checkpoint.ErrNewer):
			return retry.Final(err)
		case errors.Is(err, checkpoint.ErrBroken):
			l.broken = err.Error()
			return nil
		case err == nil:
			l.have = true
		}
		return err
	})
	if err != nil {
		return err
	}
	l.pos, l.offsets, l.savedAt = rec.Position, rec.Offsets, rec.SavedAt
	l.log.Info().Int64("epoch", l.epoch).Bool("checkpoint", l.have).Stringer("position", l.pos).Msg("leading")
	return nil
}

// session prepares and runs one session.
func (l *leadership) session(ctx context.Context) error {
	work, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s, err := l.prepare(ctx, fail)
	if err != nil && ctx.Err() != nil {
		return nil // told to stop before anything was begun
	}
	if err != nil {
		return err
	}
	l.relay.begin(s)
	defer l.relay.end(s)
	trying, stopTrying := context.WithCancel(ctx)
	var trial sync.WaitGroup
	if s.saver == nil && l.relay.cfg.Mode == Auto {
		trial.Go(func() { l.untilStreamable(trying, s) })
	}
	err = s.run(ctx, work)
	if stalled, ok := errors.AsType[*errStalled](err); ok {
		l.stalled = s.flow.lines.topics(func(name string) bool { return l.relay.deps.Router.Topic(&outbox.Row{Topic: name}) == stalled.topic })
	}
	stopTrying()
	trial.Wait()
	if s.saver != nil {
		l.have, l.broken, l.lost, l.unrecorded = true, "", "", s.saver.holding() || errors.Is(err, errLeft)
		l.pos, _, _ = s.saver.state()
		l.offsets, l.savedAt = s.saver.offsets(), time.Now()
	}
	return err
}

func (l *leadership) prepare(ctx context.Context, fail context.CancelCauseFunc) (*session, error) {
	r := l.relay
	if r.cfg.Mode == Sweep {
		return l.sweepOnly(ctx, fail, false)
	}
	reader, err := r.deps.OpenReader(ctx)
	if errors.Is(err, canal.ErrCannotStream) && r.cfg.Mode == Auto {
		l.log.Error().Err(err).Msg("the binlog can't be streamed, sweeping alone until it can")
		return l.sweepOnly(ctx, fail, false)
	}
	if err != nil {
		return nil, fmt.Errorf("open the binlog: %w", err)
	}
	s, err := l.stream(ctx, reader, fail)
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	r.countReconnect()
	return s, nil
}

// countReconnect counts a binlog connection that replaces one of an earlier session, by what ended that.
func (r *Relay) countReconnect() {
	r.mu.Lock()
	again, reason := r.streamed, restartReason(r.lastErr)
	r.streamed = true
	r.mu.Unlock()
	if again {
		r.deps.Metrics.Reconnects.WithLabelValues(reason).Inc()
	}
}

// restartReason names what ended a session, for a metric.
func restartReason(err error) string {
	var lost *canal.PositionLost
	switch {
	case errors.Is(err, ErrLockLost):
		return words.ReconnectLockLost
	case errors.Is(err, checkpoint.ErrFenced):
		return words.ReconnectFenced
	case errors.Is(err, errUnknownOutcome):
		return words.ReconnectUnknownOutcome
	case errors.As(err, &lost):
		return words.ReconnectPositionLost
	case errors.Is(err, errLeft):
		return words.ReconnectColumns
	}
	if _, stalled := errors.AsType[*errStalled](err); stalled {
		return words.ReconnectStalled
	}
	return words.ReconnectSession
}

// tryStreamEvery is how often a relay that only sweeps looks whether it can stream.
const tryStreamEvery = 30 * time.Second

func (l *leadership) untilStreamable(ctx context.Context, s *session) {
	for retry.Wait(ctx, tryStreamEvery) == nil {
		reader, err := l.relay.deps.OpenReader(ctx)
		if err != nil {
			continue
		}
		if err := reader.Close(); err != nil {
			l.log.Debug().Err(err).Msg("close the trial connection")
		}
		s.fail(errStreamable)
		return
	}
}

// resolve decides where to stream from, and says so when it is not where the checkpoint says.
func (l *leadership) resolve(ctx context.Context, reader Reader) (canal.Start, error) {
	policy := l.relay.cfg.Start
	if l.broken != "" {
		policy = canal.StartNow
	}
	start, err := reader.Resolve(ctx, l.pos, l.have, policy)
	if err != nil {
		return start, fmt.Errorf("find the position to start from: %w", err)
	}
	switch {
	case l.broken != "":
		start.Recovery, start.Detail = words.RecoveryBroken, l.broken
	case l.lost != "" && start.Recovery == words.RecoveryNone:
		start.Recovery, start.Detail = words.RecoveryLost, l.lost
	}
	event := l.log.Info()
	if start.Recovery != words.RecoveryResumed {
		event = l.log.Warn()
	}
	event.Str("recovery", start.Recovery).Str("detail", start.Detail).Stringer("saved", l.pos).
		Stringer("position", start.Position).Msg("stream starts")
	l.relay.recovered(start)
	return start, nil
}

// started notes how the stream begins. It has ended once what was pending is recorded and the replay window has
// passed.
func (l *leadership) started(start canal.Start, window *replay, everything bool) *recovery {
	saved, parts := "", 1
	if l.have {
		saved = l.pos.String()
	}
	if !window.over {
		parts++
	}
	cost := l.relay.recoveries.started(start, saved, parts)
	cost.everything = everything
	return cost
}

// note is the line in the checkpoint's history when the stream did not simply go on.
func (l *leadership) note(start canal.Start) string {
	if start.Recovery == words.RecoveryResumed {
		return ""
	}
	return "recovered: " + start.Recovery
}

// rebuild closes the topics that have rows in the table which must go before anything newer, and reads which keys
// wait. left tells that there are such rows.
func (l *leadership) rebuild(ctx context.Context, p parts, everything bool) (left bool, err error) {
	if p.letters.hold {
		if err := l.relay.deps.Tables.Letters.CanPark(); err != nil {
			return false, err
		}
	}
	if err := p.letters.load(ctx); err != nil {
		return false, err
	}
	lease := l.relay.cfg.Sweep.Lease
	names, err := l.relay.deps.Tables.Backlog.ClosedTopics(ctx, lease, everything)
	if err != nil {
		return false, fmt.Errorf("look for topics with rows left in the table: %w", err)
	}
	claimed, err := l.relay.deps.Tables.Backlog.ClaimedTopics(ctx, lease)
	if err != nil {
		return false, fmt.Errorf("look for topics with claimed rows: %w", err)
	}
	left = len(names) > 0
	l.claimed = len(claimed) > 0
	stalled := l.stalled
	l.stalled = nil
	if l.relay.cfg.Order.Relaxed {
		p.flow.lines.Rebuild(stalled, nil, time.Time{})
		return left, nil
	}
	p.flow.lines.Rebuild(append(names, stalled...), claimed, time.Now().Add(lease)) // one that is there twice does no harm
	if left {
		l.log.Info().Strs("topics", names[:min(len(names), 20)]).Int("count", len(names)).Msg("topics have rows left in the table, those go first")
	}
	return left, nil
}

// window prepares the replay window of a stream that resumes, or that reads a replica which may lag.
func (l *leadership) window(ctx context.Context, reader Reader, start canal.Start, everything, left bool) (*replay, error) {
	w, err := l.openWindow(ctx, reader, start, everything, left)
	if err == nil {
		w.cost = l.started(start, w, everything)
	}
	return w, err
}

func (l *leadership) openWindow(ctx context.Context, reader Reader, start canal.Start, everything, left bool) (*replay, error) {
	w := &replay{rows: l.relay.deps.Tables.Lookup, topicOf: l.relay.deps.Router.Topic, log: l.log}
	w.waits = everything && l.relay.deps.Upstream != nil
	if !start.Usable {
		w.over = !w.waits
		return w, nil
	}
	end, err := reader.End(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the binlog's end: %w", err)
	}
	w.until = end
	if w.endsAt(position.End{File: start.Position.File, Pos: start.Position.Pos}) {
		w.over = true
		if !left {
			return w, nil
		}
		// Nothing to replay, but the sweeper may find rows that a dead process has claimed and published.
	}
	w.tail = l.tail(ctx)
	return w, nil
}
