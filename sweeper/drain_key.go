package sweeper

import (
	"context"
	"errors"
	"slices"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/store"
)

// keyQueue is what was parked behind dead letters of a key, by id, once a person has decided about those.
type keyQueue struct {
	*Sweeper
	name   order.Name
	parked []outbox.Row
}

// keyRounds is how many batches of one key are sent before others have their turn.
const keyRounds = 10

func (q *keyQueue) line() order.Name { return q.name }

func (q *keyQueue) rounds() int { return keyRounds }

func (q *keyQueue) slot() store.Slot { return store.Slot(q.name.Key) }

// list reads the first parked rows that may be sent. A younger row may be parked before an older one: its topic has held that
// when its key began to wait, or the stream has not got to it again. So once the stream has passed what is parked, that
// is read again, up to the same row.
func (q *keyQueue) list(ctx context.Context, last bool) (listing, error) {
	found, err := q.read(ctx)
	if err != nil || last || found.rows == 0 {
		return found, err
	}
	upTo := make(map[outbox.Table]uint64)
	for i := range q.parked {
		upTo[q.parked[i].Table] = q.parked[i].ID // by id
	}
	if err := q.stream.Passed(ctx); err != nil {
		return found, err
	}
	if found, err = q.read(ctx); err != nil {
		return found, err
	}
	q.parked = slices.DeleteFunc(q.parked, func(row outbox.Row) bool { return row.ID > upTo[row.Table] })
	found.rows, found.more = len(q.parked), found.more || len(q.parked) < found.rows
	return found, nil
}

func (q *keyQueue) read(ctx context.Context) (listing, error) {
	rows, err := q.rows.Parked(ctx, q.slot(), q.cfg.Batch)
	if err != nil {
		return listing{}, err
	}
	found := listing{more: len(rows) == q.cfg.Batch}
	closed := q.lines.Closed()
	q.parked = q.parked[:0]
	for i := range rows {
		row := &rows[i]
		q.name.Topic = row.Topic
		switch {
		case slices.Contains(closed, row.Topic):
			found.stands = topicClosed
		case q.letters.TurnOf(q.name, row.Ref()) == order.Behind:
			found.stands = behindLetter
		default:
			q.parked = append(q.parked, *row)
		}
	}
	found.rows = len(q.parked)
	return found, nil
}

// send claims and sends the rows, in groups of one topic.
func (q *keyQueue) send(ctx context.Context) (total Result, clean bool, err error) {
	claimed, err := q.rows.ClaimParked(ctx, refs(q.parked), q.cfg.Lease)
	if err != nil {
		for _, group := range byTopic(q.parked) {
			q.hidden(group[0].Topic, err)
		}
		return total, false, err
	}
	if len(claimed) < len(q.parked) {
		return total, false, q.park(ctx, claimed)
	}
	clean = true
	groups := byTopic(claimed)
	for i, group := range groups {
		topic := group[0].Topic
		b := q.prepareWith(ctx, group, true, func(row *outbox.Row) store.Slot {
			if q.letters.TurnOf(q.name, row.Ref()) == order.Behind {
				return q.slot()
			}
			return 0
		})
		var ending error
		if way := q.lines.Begin(order.Name{Topic: topic}); way == order.Defer {
			q.parkRest(b) // the stream has just closed it
		} else {
			ending = q.inTurn(ctx, topic, b, way == order.Probe)
		}
		clean = clean && len(b.failed)+len(b.release)+len(b.park) == 0
		r, err := q.finish(ctx, topic, b, ending)
		total.add(r)
		if err != nil {
			return total, false, errors.Join(err, q.park(ctx, slices.Concat(groups[i+1:]...)))
		}
	}
	return total, clean, nil
}

// park puts claimed rows back.
func (q *keyQueue) park(ctx context.Context, rows []outbox.Row) error {
	var errs []error
	for _, group := range byTopic(rows) {
		b := &batch{}
		for i := range group {
			b.park = append(b.park, store.Parking{Ref: group[i].Ref(), Slot: q.slot()})
		}
		_, err := q.finish(ctx, group[0].Topic, b, nil)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (q *keyQueue) parkRest(b *batch) {
	for i := range b.ready {
		b.park = append(b.park, store.Parking{Ref: b.ready[i].row.Ref(), Slot: q.slot()})
	}
	b.ready = nil
}

// inTurn sends the rows in order: the first, and each that was a dead letter, alone, since it may be refused again
// and then holds what is behind it; the others pipelined. The error is publish's.
func (q *keyQueue) inTurn(ctx context.Context, topic string, b *batch, probe bool) error {
	for first := true; len(b.ready) > 0; first = false {
		turn := q.letters.TurnOf(q.name, b.ready[0].row.Ref())
		switch {
		case turn == order.Behind:
			q.parkRest(b)
		case first || turn == order.GoesAlone:
			acked, dead := q.alone(ctx, topic, b)
			if acked && probe {
				if _, err := q.lines.Open(ctx, order.Name{Topic: topic}); err != nil {
					q.parkRest(b)
					return err
				}
				probe = false
			}
			if !acked && !dead { // and so the topic is closed
				probe = false
				q.parkRest(b)
			}
		default:
			rest := q.cut(b)
			err := q.publish(ctx, topic, b)
			b.ready = rest
			if len(b.failed)+len(b.release) > 0 {
				q.parkRest(b)
			}
			if err != nil {
				return err
			}
		}
	}
	if probe { // all that were tried are dead letters
		q.closes(topic, "nothing could be sent", 0)
	}
	return nil
}

// cut leaves in the batch what comes before the next row that does not just go, and returns the others.
func (q *keyQueue) cut(b *batch) (rest []prepared) {
	for i := range b.ready {
		if q.letters.TurnOf(q.name, b.ready[i].row.Ref()) != order.Goes {
			rest = b.ready[i:]
			b.ready = b.ready[:i:i]
			return rest
		}
	}
	return nil
}

// alone sends the first row by itself. A topic that refuses it is closed, but not because of a message that can never
// be sent.
func (q *keyQueue) alone(ctx context.Context, topic string, b *batch) (acked, dead bool) {
	p := b.take()
	err := p.bodyless
	if err == nil {
		err = q.out.Try(ctx, topic, p.rec)
	}
	if err == nil {
		q.noteSent(b, &p)
		return true, false
	}
	wait := q.note(b, &p, err)
	if class, _ := q.broker.Classify(err); class == retry.Never {
		return false, true
	}
	q.closeAfter(ctx, topic, &p, err, wait)
	return false, false
}

// bury reports what became of dead letters in the table.
func (s *Sweeper) bury(dead []store.Failure, err error) {
	for i := range dead {
		s.letters.Buried(dead[i].Ref, err == nil || errors.Is(err, store.ErrGone))
	}
}

// waits returns the slot of a due row whose key waits, 0 when it does not.
func (s *Sweeper) waits(row *outbox.Row) store.Slot {
	line, waits := s.letters.Waits(row)
	if !waits {
		return 0
	}
	return store.Slot(line.Key)
}

// noteOrder counts a message that was acked although an earlier one of its key had died meanwhile: both were on their
// way.
func (s *Sweeper) noteOrder(p *prepared) {
	line, waits := s.letters.Waits(&p.row)
	if !waits || s.letters.TurnOf(line, p.row.Ref()) != order.Behind {
		return
	}
	s.metrics.OrderViolations.Inc()
	s.log.Error().Str("message_id", p.row.MsgID).Str("topic", p.rec.Topic).Msg("a later message of the key was published before an earlier one, which is a dead letter now")
}
