package sweeper

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// batch is claimed rows of one topic and what came of them. Only the results of publishing come from another
// goroutine.
type batch struct {
	ready   []prepared // not sent yet, in the order to send them
	sent    []outbox.Ref
	failed  []store.Failure
	dead    []store.Failure
	release []outbox.Ref
	park    []store.Parking
}

// prepared is a row with its record.
type prepared struct {
	row outbox.Row
	rec *router.Record
	// bodyless is why the row's staged body can't be had for now: it fails in its turn.
	bodyless error
	// why is the design by which it is the sweeper's, "" when the stream should have brought it.
	why string
}

// prepare routes claimed rows; those that can never be sent are dead. drained tells that they are of a closed topic.
func (s *Sweeper) prepare(ctx context.Context, rows []outbox.Row, drained bool) *batch {
	return s.prepareWith(ctx, rows, drained, s.waits)
}

// prepareWith parks those of which waits tells where. It asks after each row, since one that is dead holds those
// behind it.
func (s *Sweeper) prepareWith(ctx context.Context, rows []outbox.Row, drained bool, waits func(*outbox.Row) store.Slot) *batch {
	b := &batch{ready: make([]prepared, 0, len(rows))}
	designed := s.reckoning.take(rows, drained)
	n, bodyless := s.broker.Fill(ctx, rows)
	for i := range rows[n:] {
		b.release = append(b.release, rows[n+i].Ref())
	}
	for i := range rows[:n] {
		if err := bodyless[i]; err != nil {
			s.prepareBodyless(b, &rows[i], err)
			continue
		}
		rec, err := s.router.Route(&rows[i], words.PositionSweep)
		if err == nil && s.out.Published(rec.Topic, rows[i].MsgID) {
			s.metrics.Suppressed.WithLabelValues(words.SuppressedByTail).Inc()
			b.sent = append(b.sent, rows[i].Ref())
			continue
		}
		if slot := waits(&rows[i]); slot != 0 {
			b.park = append(b.park, store.Parking{Ref: rows[i].Ref(), Slot: slot})
			continue
		}
		if err == nil {
			b.ready = append(b.ready, prepared{row: rows[i], rec: rec, why: designed[i]})
			continue
		}
		reason := words.RefusedUnroutable
		if refusal, ok := errors.AsType[*router.Refusal](err); ok {
			reason = refusal.Reason
		}
		s.noteDead(b, &rows[i], reason, err)
	}
	return b
}

func (s *Sweeper) prepareBodyless(b *batch, row *outbox.Row, err error) {
	if class, reason := s.broker.Classify(err); class == retry.Never {
		s.noteDead(b, row, reason, err)
		return
	}
	b.ready = append(b.ready, prepared{row: *row, rec: &router.Record{Topic: row.Topic}, bodyless: err})
}

// take removes the first row that is ready.
func (b *batch) take() prepared {
	p := b.ready[0]
	b.ready = b.ready[1:]
	return p
}

// releaseRest gives back what was not sent: it stays due.
func (b *batch) releaseRest() {
	for i := range b.ready {
		b.release = append(b.release, b.ready[i].row.Ref())
	}
	b.ready = nil
}

// releaseParked gives back as due what was to be parked. At the end of a session another relay may lead already: it
// has read which keys have parked rows, and would let younger ones pass these.
func (b *batch) releaseParked() {
	for _, p := range b.park {
		b.release = append(b.release, p.Ref)
	}
	b.park = nil
}

// lone sends the first row by itself and reports whether it was acked. When not, the topic is closed.
func (s *Sweeper) lone(ctx context.Context, topic string, b *batch) bool {
	p := b.take()
	err := p.bodyless
	if err == nil {
		err = s.out.Try(ctx, topic, p.rec)
	}
	if err == nil {
		s.noteSent(b, &p)
		return true
	}
	wait := s.note(b, &p, err)
	s.closeAfter(ctx, topic, &p, err, wait)
	return false
}

// closeAfter closes a topic because of what came of a row. A stop is no reason to close one: nothing more of it is
// sent anyway.
func (s *Sweeper) closeAfter(ctx context.Context, topic string, p *prepared, err error, wait time.Duration) {
	if ctx.Err() != nil {
		return
	}
	s.retries[topic] = retryAt{at: time.Now().Add(wait), topic: p.rec.Topic}
	s.closes(topic, err.Error(), min(wait, appearsWithin))
}

// publish hands all rows to the producer in order and waits for their results, also when ctx ends meanwhile: a record
// that was handed over may be written, and its row should say so. Rows whose result never comes (the producer was
// given up) stay claimed until the lease ends. An error means that one could not be handed over: it and those behind
// it are released, and nothing more may be sent.
func (s *Sweeper) publish(ctx context.Context, topic string, b *batch) error {
	rows := b.ready
	b.ready = nil
	var ending error
	results := make(chan result, len(rows)) // of full size: done must not block
	handed := 0
	for i := range rows {
		if rows[i].bodyless != nil {
			break
		}
		ending = s.out.Publish(ctx, rows[i].rec, func(err error) { results <- result{row: i, err: err} })
		if ending != nil {
			break
		}
		handed++
	}
	s.collect(topic, b, rows[:handed], results)
	b.ready = rows[handed:]
	if ending == nil && ctx.Err() == nil && len(b.ready) > 0 && b.ready[0].bodyless != nil {
		p := b.take()
		wait := s.note(b, &p, p.bodyless)
		s.closes(topic, p.bodyless.Error(), wait)
	}
	b.releaseRest()
	return ending
}

// result is how one row of a batch went.
type result struct {
	row int
	err error
}

func (s *Sweeper) collect(topic string, b *batch, rows []prepared, results <-chan result) {
	for range rows {
		r, ok := s.next(results)
		switch {
		case !ok:
			return
		case r.err == nil:
			s.noteSent(b, &rows[r.row])
			s.noteOrder(&rows[r.row])
		default:
			s.notePipelined(topic, b, &rows[r.row], r.err)
		}
	}
}

// next returns the next result, false when none will come any more.
func (s *Sweeper) next(results <-chan result) (result, bool) {
	select {
	case r := <-results:
		return r, true
	case <-s.out.Gone():
	}
	// Both may be ready: what has come counts.
	select {
	case r := <-results:
		return r, true
	default:
		return result{}, false
	}
}

// notePipelined takes the failure of a row that was sent together with others: only the first failure of a batch is
// the row's own, the others share its fate and spend nothing.
func (s *Sweeper) notePipelined(topic string, b *batch, p *prepared, err error) {
	class, _ := s.broker.Classify(err)
	if class == retry.Refused && len(b.failed) > 0 {
		b.release = append(b.release, p.row.Ref())
		return
	}
	wait := s.note(b, p, err)
	if class == retry.Refused {
		s.retries[topic] = retryAt{at: time.Now().Add(wait), topic: p.rec.Topic}
		s.closes(topic, err.Error(), min(wait, appearsWithin))
	}
}

// note puts a row that was not acked where it belongs and returns how long to leave its topic alone.
func (s *Sweeper) note(b *batch, p *prepared, err error) time.Duration {
	class, reason := s.broker.Classify(err)
	topic := s.metrics.Topic(p.rec.Topic)
	delay := s.cfg.Retry.Delay(p.row.RetryCount+1, rand.Float64)
	switch class {
	case retry.Never:
		s.noteDead(b, &p.row, reason, err)
		return 0
	case retry.Refused:
		s.metrics.Failed.WithLabelValues(topic, reason).Inc()
		b.failed = append(b.failed, store.Failure{
			Ref: p.row.Ref(), Delay: delay, Error: err.Error(), MaxRetries: s.cfg.Retry.MaxRetries, Memory: new(store.Memory),
		})
		return delay
	case retry.Unreachable:
		b.release = append(b.release, p.row.Ref())
	}
	return unreachablePause
}

// unreachablePause is how long a topic whose brokers do not answer is left alone. It spends no retry.
const unreachablePause = 2 * time.Second

func (s *Sweeper) noteDead(b *batch, row *outbox.Row, reason string, err error) {
	s.letters.Died(row)
	s.metrics.Dead.WithLabelValues(s.metrics.Topic(row.Topic), reason).Inc()
	s.log.Error().Str("message_id", row.MsgID).Str("table", row.Table.String()).Str("reason", reason).Msg("dead letter")
	b.dead = append(b.dead, store.Failure{Ref: row.Ref(), Error: err.Error()})
}

func (s *Sweeper) noteSent(b *batch, p *prepared) {
	s.metrics.Published.WithLabelValues(s.metrics.Topic(p.rec.Topic), words.OriginSweep).Inc()
	if p.why != "" {
		s.metrics.SweepSent.WithLabelValues(p.why).Inc()
	}
	b.sent = append(b.sent, p.row.Ref())
}

// write brings the outcomes into the table, however often it takes: a row that was sent and is not marked would be
// sent again when its claim ends.
func (s *Sweeper) write(ctx context.Context, b *batch) (Result, error) {
	if ctx.Err() != nil {
		b.releaseParked()
	}
	dead := len(b.dead)
	var errs []error
	if len(b.sent) > 0 {
		err := insist(ctx, func(ctx context.Context) error {
			_, err := s.rows.MarkSent(ctx, b.sent)
			return err
		})
		errs = append(errs, err)
		if err == nil {
			s.out.Marked()
		}
	}
	if dead > 0 {
		err := insist(ctx, func(ctx context.Context) error { return s.rows.MarkDead(ctx, b.dead) })
		errs = append(errs, err)
		s.bury(b.dead, err)
	}
	if len(b.park) > 0 {
		errs = append(errs, insist(ctx, func(ctx context.Context) error { return s.rows.Park(ctx, b.park) }))
	}
	if len(b.failed) > 0 {
		errs = append(errs, insist(ctx, func(ctx context.Context) error {
			spent, err := s.rows.MarkFailed(ctx, b.failed)
			dead += len(spent)
			return err
		}))
		s.letters.Spent()
	}
	if len(b.release) > 0 {
		errs = append(errs, insist(ctx, func(ctx context.Context) error { return s.rows.Release(ctx, b.release) }))
	}
	r := Result{Sent: len(b.sent), Failed: len(b.failed), Dead: dead, Parked: len(b.park)}
	s.count(words.SweptRowSent, len(b.sent))
	s.count(words.SweptRowFailed, len(b.failed))
	s.count(words.SweptRowDead, dead)
	s.count(words.SweptRowReleased, len(b.release))
	s.count(words.SweptRowParked, len(b.park))
	return r, errors.Join(errs...)
}

// writeTimeout is how long outcomes are still written after ctx has ended.
const writeTimeout = 5 * time.Second

// insist tries until do works. When ctx ends it goes on for writeTimeout, since stopping must not lose what is known.
func insist(ctx context.Context, do func(context.Context) error) error {
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(writeTimeout, cancel) })
	defer stop()
	backoff := retry.Doubling(100*time.Millisecond, 5*time.Second).Attempts()
	for {
		err := do(patient)
		// A table that is gone may never come back.
		if err == nil || errors.Is(err, store.ErrGone) || retry.Wait(patient, backoff.Next()) != nil {
			return err
		}
	}
}

func (s *Sweeper) count(result string, n int) {
	if n > 0 {
		s.metrics.SweepRows.WithLabelValues(result).Add(float64(n))
	}
}
