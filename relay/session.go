package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/sweeper"
)

// session is one run of the pipeline, with one producer and one binlog connection. It ends when it is told to, or when
// something happens after which only a new start from the safe position is right. The leader's term goes on meanwhile.
type session struct {
	cfg     Config
	log     zerolog.Logger
	flow    *flow
	letters *letters
	backlog Backlog
	out     *publisher
	sweeper *sweeper.Sweeper
	alarm   *sweeper.Alarm
	streaming

	// fail ends the session because of an error, at once: no Send that begins after it has returned takes anything.
	// It may be called from anywhere and more than once; the first failure counts, later ones are its consequences.
	fail context.CancelCauseFunc
}

// streaming is what only a session has that reads the binlog.
type streaming struct {
	reader  Reader
	pump    *pump
	saver   *saver // nil when only the table is swept
	tracker *Tracker
	// recovery is how the stream began.
	recovery *recovery
	// everything: all that is pending at the start is the sweeper's, for there was no usable position.
	everything bool
	// upstream is nil when rows are marked on the server whose binlog is read.
	upstream Upstream
}

// run works until work ends, because ctx did or the session has failed, then brings everything that is on its way to
// its end. It returns why the session ended: nil when ctx did.
func (s *session) run(ctx, work context.Context) error {
	// The marker goes on after work has ended: what was acked meanwhile is still marked.
	marking, abandonMarks := context.WithCancel(context.WithoutCancel(ctx))
	defer abandonMarks()
	var marker, pump, loops sync.WaitGroup
	marker.Go(func() { s.ended("mark", s.flow.marker.run(marking)) })
	loops.Go(func() { s.sweeper.Run(work) })
	loops.Go(func() { s.ended("record", s.leaveToSweeper(work)) })
	loops.Go(func() { s.forgetTail(work) })
	loops.Go(func() { s.watchStalls(work) })
	if s.saver != nil {
		loops.Go(func() { s.ended("replica", s.untilApplied(work, s.upstream)) })
		loops.Go(func() { s.ended("save", s.saver.run(work, s.cfg.SaveInterval)) })
		pump.Go(func() { s.ended("stream", s.pump.run(work)) })
	}
	<-work.Done()
	cause := context.Cause(work)
	failed := !errors.Is(cause, context.Cause(ctx)) // which is nil when it has not ended
	pump.Wait()
	err := s.drain(ctx, cause, loops.Wait, func() { s.flow.marker.finish(); marker.Wait() }, abandonMarks)
	switch {
	case !failed:
		return err
	case ctx.Err() != nil:
		s.log.Warn().Err(cause).Msg("told to stop while a session that had failed was brought to its end")
		return err
	}
	return errors.Join(cause, err)
}

// leaveToSweeper records what the stream will not bring, where the position could not be used.
func (s *session) leaveToSweeper(ctx context.Context) error {
	if !s.everything {
		s.recorded(0)
		return nil
	}
	return s.record(ctx, s.backlog)
}

// forgetTail waits until the claims of a dead process have been taken up.
func (s *session) forgetTail(ctx context.Context) {
	for retry.Wait(ctx, tailKept) == nil {
		if s.pump == nil || s.pump.replay.settled(s.tracker) {
			s.out.tail.forget()
			return
		}
	}
}

// tailKept is how long the tail is kept: the stream asks it inside the replay window, the sweeper about rows that were
// claimed by a dead process.
const tailKept = 4 * ClaimLease

// ended ends the session when one of its loops has ended with an error: also with one that only says that a context
// has ended, since it need not be the session's.
func (s *session) ended(what string, err error) {
	if err != nil {
		s.fail(fmt.Errorf("%s: %w", what, err))
	}
}

// lostDrain bounds the stop of a session that has lost its lock or is fenced: another one may be at work already.
const lostDrain = 2 * time.Second

// drain brings what is on its way to its end, in the order of the flow: what Kafka was given is waited for, what it
// acked is marked, what is marked is saved. Whatever does not get so far in time is unsettled and is read again.
func (s *session) drain(ctx context.Context, cause error, waitLoops, finishMarks, abandonMarks func()) error {
	limit := s.cfg.DrainTimeout
	// What a stalled topic waits for does not come.
	if _, stalled := errors.AsType[*errStalled](cause); stalled || errors.Is(cause, ErrLockLost) || errors.Is(cause, checkpoint.ErrFenced) {
		limit = lostDrain
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit) // stopping must not cut this short
	defer cancel()
	err := s.flow.producer.Close(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kafka.ErrAbandoned) {
		// That is no failure of the stop: what has no ack is unsettled, and is read again.
		s.log.Warn().Err(err).Msg("stops with messages that Kafka has not acked, they are looked up after the next start")
		err = nil
	}
	close(s.out.gone)
	waitLoops()
	s.flow.probes.Wait()
	keep := context.AfterFunc(ctx, abandonMarks)
	finishMarks()
	keep()
	if s.saver != nil {
		// What is safe is saved also when the wait has used up ctx: save bounds itself.
		err = errors.Join(err, s.reader.Close(), s.saver.save(context.WithoutCancel(ctx)))
	}
	return err
}

// parts are what every session begins with.
type parts struct {
	flow    *flow
	letters *letters
	alarm   *sweeper.Alarm
	fail    context.CancelCauseFunc
}

// begin makes them, and closes the topics that have rows left in the table. left tells that there are such rows.
func (l *leadership) begin(ctx context.Context, everything bool, fail context.CancelCauseFunc) (p parts, left bool, err error) {
	r, alarm := l.relay, sweeper.NewAlarm()
	p = parts{alarm: alarm, fail: fail}
	p.flow, err = newFlow(flowParts{
		cfg: r.cfg, broker: r.deps.Broker, tables: r.deps.Tables, offsets: l.offsets, fail: fail, log: l.log,
		notify: func() { alarm.WakeIn(0) }, metrics: r.deps.Metrics, reckoning: r.reckoning,
		marks: markerConfig{
			check: l.check, batch: r.cfg.MarkBatch, delay: r.cfg.MarkDelay, policy: r.cfg.Retry, notes: r.recoveries,
			observe: func(d time.Duration) { r.deps.Metrics.Mark.Observe(d.Seconds()) },
		},
	})
	if err != nil {
		return p, false, err
	}
	p.letters = newLetters(p.flow.lines, r.deps.Tables.Letters, r.deps.Router.Key, l.log)
	left, err = l.rebuild(ctx, p, everything)
	return p, left, p.closeAfter(ctx, err)
}

// closeAfter closes the producer of a session that could not be prepared.
func (p parts) closeAfter(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, p.flow.producer.Close(ctx))
}

// sessionOf puts a session together. stream is how the sweeper learns how far that is.
func (l *leadership) sessionOf(p parts, s streaming, tail *tail, stream sweeper.Stream) *session {
	r := l.relay
	cfg, reckoning := r.cfg.Sweep, r.reckoning
	if s.saver == nil {
		reckoning = nil
		cfg.Interval = min(cfg.Interval, pollInterval)
		cfg.Grace = 0
	}
	out := &publisher{flow: p.flow, tail: tail, bodies: bodies{broker: r.deps.Broker}, gone: make(chan struct{})}
	return &session{
		cfg: r.cfg, log: l.log, flow: p.flow, letters: p.letters, backlog: r.deps.Tables.Backlog, out: out, alarm: p.alarm,
		streaming: s, fail: p.fail,
		sweeper: sweeper.New(cfg, sweeper.Parts{
			Tables: r.deps.Tables.Sweep, Lines: p.flow.lines, Letters: p.letters, Stream: stream, Router: r.deps.Router,
			Out: out, Broker: out, Alarm: p.alarm, Metrics: r.deps.Metrics, Reckoning: reckoning, Log: l.log,
		}),
	}
}

// unreachablePause is how long a topic that can't be reached, while others can, is left alone.
const unreachablePause = 2 * time.Second

// messageSize is what an item takes of the in-flight window, in bytes.
func messageSize(it *item) int64 {
	n := len(it.rec.Key) + len(it.rec.Value)
	for _, h := range it.rec.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}

// stream prepares a session that reads the binlog.
func (l *leadership) stream(ctx context.Context, reader Reader, fail context.CancelCauseFunc) (*session, error) {
	r := l.relay
	// Without it a row that is due at once can't be told from a delayed one, and would be left to the sweeper.
	if err := r.readZone(ctx); err != nil {
		return nil, fmt.Errorf("read the server's time zone: %w", err)
	}
	start, err := l.resolve(ctx, reader)
	if err != nil {
		return nil, err
	}
	// The topics are read after the start was chosen: what is committed in between is in both, and so deferred.
	// From the oldest binlog on, rows may be pending that are older than that.
	everything := !start.Usable || start.Recovery == words.RecoveryNone || l.unrecorded
	p, left, err := l.begin(ctx, everything, fail)
	if err != nil {
		return nil, err
	}
	window, err := l.window(ctx, reader, start, everything, left)
	if err != nil {
		return nil, p.closeAfter(ctx, err)
	}
	cursor, err := canal.NewCursor(start.Position)
	if err != nil {
		return nil, p.closeAfter(ctx, err)
	}
	began := time.Now()
	s := streaming{
		reader: reader, tracker: NewTracker(start.Position), recovery: window.cost, everything: everything, upstream: r.deps.Upstream,
	}
	s.saver = &saver{
		savedBy: savedBy{source: r.cfg.Source, by: r.cfg.By, epoch: l.epoch}, store: r.deps.Checkpoints, tracker: s.tracker, cursor: cursor,
		offsets: func() map[string]map[int32]int64 { return l.offsetsOf(p.flow, s.tracker, window, began) },
		check:   l.check, metrics: r.deps.Metrics, trouble: newSaving(l.log),
		saving: saving{dirty: true, held: everything, note: l.note(start)}, now: make(chan struct{}, 1),
	}
	s.pump = &pump{
		server: start.Position.Server, reader: reader, router: r.deps.Router, tracker: s.tracker, flow: p.flow, replay: window,
		bodies: bodies{broker: r.deps.Broker}, check: l.check, alarm: p.alarm, delay: r.delay,
		leaving: leaving{everything: everything, may: l.mayLeave, notes: r.recoveries},
	}
	r.reckoning.Begin()
	if err := reader.Stream(ctx, start.Position); err != nil {
		return nil, p.closeAfter(ctx, err)
	}
	mark := &watermark{check: l.check, reader: reader, tracker: s.tracker, upstream: r.deps.Upstream}
	return l.sessionOf(p, s, window.tail, mark), nil
}

// offsetsOf returns the offsets for a checkpoint. Until the replay window is settled they are the loaded ones: rows
// that an earlier process published lie anywhere behind those, and this one has not marked them all. The same goes
// for rows that it had claimed, as long as those may turn up.
func (l *leadership) offsetsOf(f *flow, t *Tracker, window *replay, began time.Time) map[string]map[int32]int64 {
	if !window.settled(t) || l.claimed && time.Since(began) < tailKept {
		return l.offsets
	}
	return f.offsets.snapshot(f.marker)
}

// sweepOnly prepares a session that reads nothing but the table. It asks Kafka's tail what was published before where
// rows are left, or always.
func (l *leadership) sweepOnly(ctx context.Context, fail context.CancelCauseFunc, always bool) (*session, error) {
	p, left, err := l.begin(ctx, false, fail)
	if err != nil {
		return nil, err
	}
	var tail *tail
	if left || always {
		tail = l.tail(ctx)
	}
	return l.sessionOf(p, streaming{}, tail, noStream{check: l.check}), nil
}

// pollInterval is how often the table is read when there is no stream.
const pollInterval = time.Second
