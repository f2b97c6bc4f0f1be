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
	cfg   Config
	log   zerolog.Logger
	began time.Time
	// everything tells that all that is pending at the start is the sweeper's: there was no usable position.
	everything bool
	// recovery is how the stream began.
	recovery *recovery
	// upstream is nil when rows are marked on the server whose binlog is read.
	upstream Upstream

	reader  Reader // nil when only the table is swept
	pump    *pump  // likewise
	saver   *saver // likewise
	tracker *Tracker
	gate    *Gate
	keys    *Keys
	flow    *flow
	marker  *marker
	out     *publisher
	sweeper *sweeper.Sweeper

	// fail ends the session because of an error, at once: no Send that begins after it has returned takes anything.
	// It may be called from anywhere and more than once; the first failure counts, later ones are its consequences.
	fail context.CancelCauseFunc
}

// run works until work ends, because ctx did or the session has failed, then brings everything that is on its way to
// its end. It returns why the session ended: nil when ctx did.
func (s *session) run(ctx, work context.Context) error {
	// The marker goes on after work has ended: what was acked meanwhile is still marked.
	marking, abandonMarks := context.WithCancel(context.WithoutCancel(ctx))
	defer abandonMarks()
	var marker, pump, loops sync.WaitGroup
	marker.Go(func() { s.ended("mark", s.marker.run(marking)) })
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
	err := s.drain(ctx, cause, loops.Wait, func() { s.marker.finish(); marker.Wait() }, abandonMarks)
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
	return s.record(ctx, s.flow.rows)
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

// drain brings what is on its way to its end, in the order of the flow: what Kafka was given is waited for, what it acked
// is marked, what is marked is saved. Whatever does not get so far in time is unsettled and is read again.
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

// assemble connects the parts that every session has.
func (l *leadership) assemble(log zerolog.Logger, fail context.CancelCauseFunc) (*session, error) {
	r := l.relay
	s := &session{cfg: r.cfg, log: log, began: time.Now(), fail: fail}
	f := &flow{
		rows: r.deps.Rows, size: messageSize, fail: s.fail, pause: unreachablePause,
		prober:   newProber(r.deps.Broker, r.cfg.CreateTopics, log),
		inFlight: newWindow(r.cfg.InFlight, r.cfg.InFlightBytes),
		unmarked: newWindow(r.cfg.InFlight+r.cfg.Unmarked, 1),
		offsets:  newOffsets(l.offsets),
		metrics:  r.deps.Metrics, reckoning: r.reckoning, log: log,
	}
	s.flow = f
	s.gate = NewGate(f, log)
	s.gate.relaxed = r.cfg.Relaxed
	f.gate = s.gate
	s.keys = newKeys(r.cfg.HoldAfterDead && !r.cfg.Relaxed, r.deps.Rows, r.deps.Router.Key, f, log)
	f.keys = s.keys
	s.marker = newMarker(r.deps.Rows, markerConfig{
		check: l.check, batch: r.cfg.MarkBatch, delay: r.cfg.MarkDelay, policy: r.cfg.Retry, notes: r.recoveries,
		observe: func(d time.Duration) { r.deps.Metrics.Mark.Observe(d.Seconds()) },
	}, f.settled, log)
	f.marker = s.marker
	producer, err := r.deps.Broker.NewProducer(f.result)
	if err != nil {
		return nil, err
	}
	f.producer = producer
	s.out = &publisher{flow: f, bodies: bodies{broker: r.deps.Broker}, gone: make(chan struct{})}
	return s, nil
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
	s, err := l.assemble(l.log, fail)
	if err != nil {
		return nil, err
	}
	// The topics are read after the start was chosen: what is committed in between is in both, and so deferred.
	// From the oldest binlog on, rows may be pending that are older than that.
	s.everything = !start.Usable || start.Recovery == words.RecoveryNone || l.unrecorded
	left, err := l.rebuild(ctx, s, s.everything)
	if err != nil {
		return nil, errors.Join(err, s.flow.producer.Close(ctx))
	}
	s.reader, s.upstream = reader, r.deps.Upstream
	s.tracker = NewTracker(start.Position)
	window, err := l.window(ctx, reader, start, s.everything, left)
	if err != nil {
		return nil, errors.Join(err, s.flow.producer.Close(ctx))
	}
	cursor, err := canal.NewCursor(start.Position)
	if err != nil {
		return nil, errors.Join(err, s.flow.producer.Close(ctx))
	}
	s.recovery = l.begin(start, window, s.everything)
	s.saver = &saver{
		source: r.cfg.Source, by: r.cfg.By, epoch: l.epoch, store: r.deps.Checkpoints, tracker: s.tracker, cursor: cursor,
		offsets: func() map[string]map[int32]int64 { return l.offsetsOf(s, window) },
		check:   l.check, metrics: r.deps.Metrics, log: l.log, dirty: true, now: make(chan struct{}, 1), held: s.everything, note: l.note(start),
	}
	s.out.tail = window.tail
	s.sweeper = l.sweeper(s, &watermark{check: l.check, reader: reader, tracker: s.tracker, upstream: r.deps.Upstream})
	s.pump = &pump{
		source: r.cfg.Source, server: start.Position.Server, reader: reader, router: r.deps.Router, tracker: s.tracker,
		check: l.check, notes: r.recoveries, everything: s.everything, mayLeave: l.mayLeave, gate: s.gate, flow: s.flow, replay: window, bodies: bodies{broker: r.deps.Broker},
		kick: s.sweeper.Expect, wakeIn: s.sweeper.WakeIn, delay: r.delay,
		metrics: r.deps.Metrics, reckoning: r.reckoning, log: l.log,
	}
	r.reckoning.Begin()
	if err := reader.Stream(ctx, start.Position); err != nil {
		return nil, errors.Join(err, s.flow.producer.Close(ctx))
	}
	return s, nil
}

// offsetsOf returns the offsets for a checkpoint. Until the replay window is settled they are the loaded ones: rows that an
// earlier process published lie anywhere behind those, and this one has not marked them all. The same goes for rows that
// it had claimed, as long as those may turn up.
func (l *leadership) offsetsOf(s *session, window *replay) map[string]map[int32]int64 {
	if !window.settled(s.tracker) || l.claimed && time.Since(s.began) < tailKept {
		return l.offsets
	}
	return s.flow.offsets.snapshot(s.marker)
}

// sweepOnly prepares a session that reads nothing but the table.
func (l *leadership) sweepOnly(ctx context.Context, fail context.CancelCauseFunc) (*session, error) {
	s, err := l.assemble(l.log, fail)
	if err != nil {
		return nil, err
	}
	left, err := l.rebuild(ctx, s, false)
	if err != nil {
		return nil, errors.Join(err, s.flow.producer.Close(ctx))
	}
	if left {
		s.out.tail = l.tail(ctx)
	}
	s.sweeper = l.sweeper(s, noStream{check: l.check})
	return s, nil
}

func (l *leadership) sweeper(s *session, stream sweeper.Stream) *sweeper.Sweeper {
	d := l.relay.deps
	cfg := l.relay.cfg.Sweep
	reckoning := l.relay.reckoning
	if s.saver == nil {
		reckoning = nil
		cfg.Interval = min(cfg.Interval, pollInterval)
		cfg.Grace = 0
	}
	sw := sweeper.New(cfg, d.Sweep, s.gate, s.keys, stream, d.Router, s.out, d.Metrics, reckoning, l.log)
	s.gate.wake = func() { sw.WakeIn(0) }
	return sw
}

// pollInterval is how often the table is read when there is no stream.
const pollInterval = time.Second
