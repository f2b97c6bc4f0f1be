package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/sweeper"
)

// flow brings rows from the pump through their lines and the producer to the marker, and accounts for them on the
// way: the windows, the offsets, the metrics. It is the lines' sink and gets the producer's results.
//
// The way of a row: publish, admit (the line of its key, then that of its topic), onward, hand, result, acked,
// settled. Where it leaves that way for the table it goes leave, settled.
type flow struct {
	outlet
	lines  *Lines
	prober *prober
	probes sync.WaitGroup
	marker *marker
	rows   Lookup

	inFlight *window // unacked, in rows and bytes
	unmarked *window // not settled, in rows
	offsets  *offsets

	metrics   *metrics.Source
	reckoning *sweeper.Reckoning
	log       zerolog.Logger
}

// flowParts are what a flow is made of.
type flowParts struct {
	cfg     Config
	broker  Broker
	tables  Tables
	offsets map[string]map[int32]int64 // of the loaded checkpoint
	marks   markerConfig
	notify  func()      // asks the sweeper to look at its work
	fail    func(error) // ends the session

	metrics   *metrics.Source
	reckoning *sweeper.Reckoning
	log       zerolog.Logger
}

// newFlow connects the parts that every session has. The producer is not made before all else is there to take its
// results.
func newFlow(p flowParts) (*flow, error) {
	f := &flow{
		outlet: outlet{fail: p.fail, outage: newOutage(p.log)}, prober: newProber(p.broker, p.cfg.CreateTopics, p.log), rows: p.tables.Lookup,
		inFlight: newWindow(p.cfg.InFlight, p.cfg.InFlightBytes), unmarked: newWindow(p.cfg.InFlight+p.cfg.Unmarked, 1),
		offsets: newOffsets(p.offsets), metrics: p.metrics, reckoning: p.reckoning, log: p.log,
	}
	orders := p.cfg.Order
	orders.Hold = orders.Hold && !orders.Relaxed
	f.lines = newLines(orders, f, p.notify, p.log)
	f.marker = newMarker(p.tables.Marks, p.marks, f.settled, p.log)
	producer, err := p.broker.NewProducer(f.result)
	f.producer = producer
	return f, err
}

// outlet is the way to the producer.
type outlet struct {
	producer Producer
	fail     func(error) // ends the session: an outcome is unknown
	// unanswered are the records that the producer was given.
	unanswered unanswered
	outage     *trouble.Log
}

// errUnknownOutcome ends a session: the producer gave up on a record, which may or may not be in Kafka, and later ones
// must not pass it. The stream starts again from the last safe position.
var errUnknownOutcome = errors.New("kafka: the outcome of a record is unknown")

// publish takes a place in both windows, which may wait, and lets the row's lines decide.
func (f *flow) publish(ctx context.Context, it *item) error {
	it.size = messageSize(it)
	limit, err := f.prober.limit(ctx, it.dest, it.size)
	if err != nil {
		return err
	}
	if limit > 0 && it.size > limit {
		return f.refuse(ctx, it, it.topic.Name().Topic, words.RefusedTooLarge,
			"the topic takes smaller messages only: raise its max.message.bytes and retry the message")
	}
	if err := f.reserve(ctx, it); err != nil {
		return err
	}
	return f.onward(ctx, it, f.lines.admit(it))
}

// onward brings a message the way that a line has chosen.
func (f *flow) onward(ctx context.Context, it *item, way order.Way) error {
	switch way {
	case order.Send:
		return f.hand(ctx, it)
	case order.Probe:
		f.probe(ctx, it)
	case order.Defer, order.Park:
		f.leave(it, way)
	case order.Held:
	}
	return nil
}

func (f *flow) reserve(ctx context.Context, it *item) error {
	if ok, _ := f.unmarked.tryAcquire(0); !ok {
		start := time.Now()
		err := f.unmarked.acquire(ctx, 0)
		f.metrics.Backpressure.Add(time.Since(start).Seconds())
		if err != nil {
			return err
		}
	}
	if ok, _ := f.inFlight.tryAcquire(it.size); ok {
		return nil
	}
	start := time.Now()
	err := f.inFlight.acquire(ctx, it.size)
	f.metrics.Backpressure.Add(time.Since(start).Seconds())
	return err
}

// refuse makes a row a dead letter before it comes near Kafka. topic is the row's.
func (f *flow) refuse(ctx context.Context, it *item, topic, reason, text string) error {
	if err := f.unmarked.acquire(ctx, 0); err != nil {
		return err
	}
	dest := topic
	if it.dest != "" {
		dest = it.dest
	}
	f.metrics.Dead.WithLabelValues(f.metrics.Topic(dest), reason).Inc()
	f.lines.died(it.ref, topic, it.slot)
	f.log.Error().Str("message_id", it.ref.MsgID).Str("table", it.ref.Table.String()).Str("reason", reason).Msg("dead letter")
	f.marker.add(verdict{it: it, outcome: outcomeDead, text: text})
	return nil
}

// alreadyPublished has a row marked that was found in Kafka.
func (f *flow) alreadyPublished(ctx context.Context, it *item) error {
	if err := f.unmarked.acquire(ctx, 0); err != nil {
		return err
	}
	f.marker.add(verdict{it: it, outcome: outcomeSent})
	return nil
}

// hand hands a message to the producer. When that fails the row stays unsettled, and nothing that comes after it may
// be handed over: it would pass this one, which the next session reads again.
func (f *flow) hand(ctx context.Context, it *item) error {
	it.sentAt = time.Now()
	it.waiting = f.unanswered.add(it.dest)
	return f.give(ctx, it.rec, it, it.waiting)
}

// give is the one way to the producer, for the stream and for the sweeper. An error ends the session, whether that
// was ending already or not, and it ends what the caller is doing.
func (o *outlet) give(ctx context.Context, rec *router.Record, token any, w *waiting) error {
	err := o.producer.Send(ctx, rec, token)
	if err != nil {
		w.answered.Store(true)
		o.fail(err)
	}
	return err
}

// leave leaves a message to the sweeper: until its topic is drained, or its key need not wait any more.
func (f *flow) leave(it *item, way order.Way) {
	f.free(it)
	outcome := outcomeDeferred
	if way == order.Park {
		outcome = outcomeParked
	}
	f.marker.add(verdict{it: it, outcome: outcome})
}

// free gives back the item's place in the in-flight window.
func (f *flow) free(it *item) {
	f.inFlight.release(1, it.size)
	it.size = 0
	it.rec = nil
}

// result takes the producer's word about a message. It is called from one goroutine and does not block.
func (f *flow) result(res kafka.Result) {
	switch token := res.Token.(type) {
	case *item:
		token.waiting.answered.Store(true)
		if res.Err == nil {
			f.acked(token, res.Partition, res.Offset)
			return
		}
		f.refused(token, res.Err)
	case func(kafka.Result):
		token(res)
	}
}

func (f *flow) acked(it *item, partition int32, offset int64) {
	f.outage.Note(nil)
	it.partition, it.offset = partition, offset
	topic := f.metrics.Topic(it.dest)
	now := time.Now()
	f.metrics.Published.WithLabelValues(topic, it.origin).Inc()
	f.reckoning.Delivered()
	f.metrics.Publish.WithLabelValues(topic).Observe(now.Sub(it.sentAt).Seconds())
	if it.origin == words.OriginStream {
		f.metrics.CommitToAck.WithLabelValues(topic).Observe(max(0, now.Sub(it.committed).Seconds()))
	}
	if earlier := f.lines.overtook(it); earlier != "" {
		f.metrics.OrderViolations.Inc()
		f.log.Error().Str("message_id", it.ref.MsgID).Str("earlier_message_id", earlier).Str("topic", it.dest).
			Msg("a later message of the key was published before an earlier one")
	}
	f.free(it)
	dest := it.dest
	f.marker.add(verdict{it: it, outcome: outcomeSent})
	// Only now: a checkpoint between the two must not point behind a message that the marker does not know yet.
	f.offsets.acked(dest, partition, offset)
}

// refused takes an error for a message of an open topic.
func (f *flow) refused(it *item, err error) {
	switch kafka.Classify(err) {
	case retry.Never:
		f.dead(it, err)
	case retry.Refused:
		f.lines.refusedOpen(it.topic, it.rec.Key, it.ref.MsgID)
		// Only the first of a batch has failed by itself; the others share its fate and spend nothing.
		if f.lines.close(it.topic, err.Error(), time.Now().Add(unreachablePause)) {
			f.failed(it, err)
			return
		}
		f.lines.deferItem(it.topic, it)
	case retry.Unreachable:
		f.lines.refusedOpen(it.topic, it.rec.Key, it.ref.MsgID) // what was in a request behind it may be acked
		f.free(it)
		f.unknownOutcome(err)
	}
}

// unknownOutcome ends the session.
func (f *flow) unknownOutcome(err error) { f.fail(errors.Join(errUnknownOutcome, err)) }

func (f *flow) dead(it *item, err error) {
	f.metrics.Dead.WithLabelValues(f.metrics.Topic(it.dest), kafka.Reason(err)).Inc()
	f.log.Error().Err(err).Str("message_id", it.ref.MsgID).Str("topic", it.dest).Msg("dead letter")
	f.lines.died(it.ref, it.topic.Name().Topic, it.slot)
	f.free(it)
	f.marker.add(verdict{it: it, outcome: outcomeDead, text: err.Error()})
}

func (f *flow) failed(it *item, err error) {
	f.metrics.Failed.WithLabelValues(f.metrics.Topic(it.dest), reasonOf(err)).Inc()
	f.free(it)
	f.lines.willFail(it.topic)
	f.marker.add(verdict{it: it, outcome: outcomeFailed, text: err.Error()})
}

// settled is called by the marker once the table says what became of the rows.
func (f *flow) settled(verdicts []verdict) {
	for i := range verdicts {
		v := &verdicts[i]
		switch v.outcome {
		case outcomeDeferred:
			f.lines.written(v.it, order.Defer)
		case outcomeFailed:
			f.lines.failed(v.it.topic)
		case outcomeDead:
			f.lines.Buried(v.it.ref, true)
		case outcomeParked:
			f.lines.written(v.it, order.Park)
		case outcomeSent:
		}
		v.it.txn.Settle(1)
	}
	f.unmarked.release(len(verdicts), 0)
}

// stillPending asks about held rows that were written with a next_retry_time, since the sweeper may have seen those
// as due before the stream has read them, and settles the ones that were sent. An error means that the session is
// ending and that nothing is known.
func (f *flow) stillPending(ctx context.Context, items []*item) ([]*item, error) {
	var refs []outbox.Ref
	for _, it := range items {
		if it.hasNextRetry {
			refs = append(refs, it.ref)
		}
	}
	if len(refs) == 0 {
		return items, nil
	}
	var found map[outbox.Ref]store.Found
	err := persist(ctx, f.log, "look up held rows", func(ctx context.Context) (err error) {
		found, err = f.rows.Lookup(ctx, refs)
		return err
	})
	if err != nil {
		return nil, err
	}
	left := make([]*item, 0, len(items))
	for _, it := range items {
		row, ok := found[it.ref]
		if it.hasNextRetry && ok && row.Status != outbox.Pending {
			f.free(it)
			f.unmarked.release(1, 0)
			it.txn.Settle(1)
			continue
		}
		left = append(left, it)
	}
	return left, nil
}
