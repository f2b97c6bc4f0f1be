package sweeper

import (
	"context"
	"errors"
	"slices"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/store"
)

// This file sends what was parked behind dead letters, once a person has decided about those.

// releaseBatches is how many batches of one key are sent before others have their turn.
const releaseBatches = 10

// release sends what may go of the keys that waited. It comes after a general sweep that has left nothing: a retried dead
// letter that the table shows as due is parked by then, and so goes first.
func (s *Sweeper) release(ctx context.Context) (Result, error) {
	var total Result
	slots := s.keys.Ready()
	for i, slot := range slots {
		r, topic, blocked, err := s.releaseKey(ctx, slot)
		total.add(r)
		s.keys.Again(slot, topic, blocked)
		if err != nil {
			for _, left := range slots[i+1:] {
				s.keys.Again(left, "", false)
			}
			return total, err
		}
	}
	return total, nil
}

// releaseKey sends what may go of one key, and hands it back when nothing is left. blocked tells that what is left waits
// behind a dead letter.
func (s *Sweeper) releaseKey(ctx context.Context, slot store.Slot) (total Result, topic string, blocked bool, err error) {
	for range releaseBatches {
		rows, left, err := s.parked(ctx, slot)
		if len(rows) > 0 {
			topic = rows[0].Topic
		} else if left != "" {
			topic = left
		}
		switch {
		case err != nil:
			return total, topic, false, err
		case len(rows) == 0 && left != "":
			return total, topic, !s.closed(left), nil
		case len(rows) == 0:
			r, held, err := s.handBackKey(ctx, slot)
			total.add(r)
			return total, topic, !held, err
		}
		// What is parked may have been so by a stream that has not got to an earlier message of the key again.
		if err := s.stream.Passed(ctx); err != nil {
			return total, topic, false, err
		}
		r, clean, err := s.sendParked(ctx, slot, rows)
		total.add(r)
		if err != nil || !clean {
			return total, topic, false, err
		}
	}
	total.More = true
	return total, topic, false, nil
}

// parked returns the first parked rows of a slot that may be sent, by id. left is a topic of those that may not.
func (s *Sweeper) parked(ctx context.Context, slot store.Slot) (rows []outbox.Row, left string, err error) {
	found, err := s.rows.Parked(ctx, slot, s.cfg.Batch)
	if err != nil {
		return nil, "", err
	}
	closed := s.gate.Closed()
	for i := range found {
		row := &found[i]
		if s.keys.May(slot, row.Ref()) && !slices.Contains(closed, row.Topic) {
			rows = append(rows, *row)
		} else {
			left = row.Topic
		}
	}
	return rows, left, nil
}

func (s *Sweeper) closed(topic string) bool { return slices.Contains(s.gate.Closed(), topic) }

// handBackKey sends what was parked while the rest was being sent, with the stream holding what comes after it, and ends the
// key's waiting. held is false when the key waits behind a dead letter.
func (s *Sweeper) handBackKey(ctx context.Context, slot store.Slot) (total Result, held bool, err error) {
	if !s.keys.Hold(ctx, slot) {
		return total, false, nil
	}
	for range releaseBatches {
		rows, left, err := s.parked(ctx, slot)
		if err == nil && len(rows) == 0 && left == "" {
			ended, err := s.keys.HandBack(ctx, slot)
			total.More = !ended
			return total, true, err
		}
		clean := false
		if err == nil && len(rows) > 0 {
			var r Result
			r, clean, err = s.sendParked(ctx, slot, rows)
			total.add(r)
		}
		if !clean || err != nil {
			s.keys.Unhold(slot)
			return total, true, err
		}
	}
	s.keys.Unhold(slot)
	total.More = true
	return total, true, nil
}

// sendParked claims and sends parked rows of a slot. clean is false when one of them was not acked or could not be claimed:
// those behind it have to wait.
func (s *Sweeper) sendParked(ctx context.Context, slot store.Slot, rows []outbox.Row) (total Result, clean bool, err error) {
	claimed, err := s.rows.ClaimParked(ctx, refs(rows), s.cfg.Lease)
	if err != nil {
		for i := range rows {
			s.hidden(rows[i].Topic, err)
		}
		return total, false, err
	}
	if len(claimed) < len(rows) {
		return total, false, s.park(ctx, slot, claimed)
	}
	clean = true
	groups := byTopic(claimed)
	for i, group := range groups {
		topic := group[0].Topic
		b := s.prepareWith(ctx, group, true, func(row *outbox.Row) store.Slot {
			if s.keys.May(slot, row.Ref()) {
				return 0
			}
			return slot
		})
		var ending error
		switch probe, open := s.gate.BeginProbe(topic); {
		case probe || open:
			ending = s.inTurn(ctx, slot, topic, b, probe)
		default:
			s.parkRest(b, slot) // the stream has just closed it
		}
		clean = clean && len(b.failed)+len(b.release)+len(b.park) == 0
		r, err := s.write(ctx, b)
		total.add(r)
		if err != nil {
			s.hidden(topic, err)
		}
		if err = errors.Join(ending, err); err != nil {
			return total, false, errors.Join(err, s.park(ctx, slot, slices.Concat(groups[i+1:]...)))
		}
	}
	return total, clean, nil
}

// park puts claimed rows back.
func (s *Sweeper) park(ctx context.Context, slot store.Slot, rows []outbox.Row) error {
	if len(rows) == 0 {
		return nil
	}
	b := &batch{}
	for i := range rows {
		b.park = append(b.park, store.Parking{Ref: rows[i].Ref(), Slot: slot})
	}
	_, err := s.write(ctx, b)
	if err != nil {
		for _, topic := range byTopic(rows) {
			s.hidden(topic[0].Topic, err)
		}
	}
	return err
}

func (s *Sweeper) parkRest(b *batch, slot store.Slot) {
	for i := range b.ready {
		b.park = append(b.park, store.Parking{Ref: b.ready[i].row.Ref(), Slot: slot})
	}
	b.ready = nil
}

// inTurn sends the rows in order: the first, and each that was a dead letter, alone, since it may be refused again and then
// holds what is behind it; the others pipelined. The error is publish's.
func (s *Sweeper) inTurn(ctx context.Context, slot store.Slot, topic string, b *batch, probe bool) error {
	for first := true; len(b.ready) > 0; first = false {
		row := b.ready[0].row.Ref()
		switch {
		case !s.keys.May(slot, row):
			s.parkRest(b, slot)
		case first || s.keys.Alone(slot, row):
			acked, dead := s.alone(ctx, topic, b)
			if acked && probe {
				if err := s.gate.ProbeAcked(ctx, topic); err != nil {
					s.parkRest(b, slot)
					return err
				}
				probe = false
			}
			if !acked && !dead { // and so the topic is closed
				probe = false
				s.parkRest(b, slot)
			}
		default:
			rest := s.cut(b, slot)
			err := s.publish(ctx, topic, b)
			b.ready = rest
			if len(b.failed)+len(b.release) > 0 {
				s.parkRest(b, slot)
			}
			if err != nil {
				return err
			}
		}
	}
	if probe {
		s.gate.Close(topic, "nothing could be sent", 0) // all that were tried are dead letters
	}
	return nil
}

// cut leaves in the batch what comes before the next row that goes alone, and returns the others.
func (s *Sweeper) cut(b *batch, slot store.Slot) (rest []prepared) {
	for i := range b.ready {
		if s.keys.Alone(slot, b.ready[i].row.Ref()) {
			rest = b.ready[i:]
			b.ready = b.ready[:i:i]
			return rest
		}
	}
	return nil
}

// alone sends the first row by itself. A topic that refuses it is closed, but not because of a message that can never be sent.
func (s *Sweeper) alone(ctx context.Context, topic string, b *batch) (acked, dead bool) {
	p := b.take()
	err := p.bodyless
	if err == nil {
		err = s.out.Try(ctx, topic, p.rec)
	}
	if err == nil {
		s.noteSent(b, &p)
		return true, false
	}
	wait := s.note(b, &p, err)
	if class, _ := s.out.Classify(err); class == retry.Never {
		return false, true
	}
	s.closeAfter(ctx, topic, &p, err, wait)
	return false, false
}

// bury tells the keys what became of dead letters in the table.
func (s *Sweeper) bury(dead []store.Failure, err error) {
	for i := range dead {
		s.keys.Buried(dead[i].Ref, err == nil || errors.Is(err, store.ErrGone))
	}
}

// waitsForFirst is Waits for the row with which a closed topic is tried: the first of its key need not wait for that one.
func (s *Sweeper) waitsForFirst(ctx context.Context, row *outbox.Row) (store.Slot, error) {
	slot := s.keys.Waits(row)
	if slot == 0 || !s.keys.May(slot, row.Ref()) {
		return slot, nil
	}
	parked, err := s.rows.Parked(ctx, slot, 1)
	if err != nil || len(parked) > 0 && (parked[0].Table != row.Table || parked[0].ID < row.ID) {
		return slot, err
	}
	return 0, nil
}

// noteOrder counts a message that was acked although an earlier one of its key had died meanwhile: both were on their way.
func (s *Sweeper) noteOrder(p *prepared) {
	slot := s.keys.Waits(&p.row)
	if slot == 0 || s.keys.May(slot, p.row.Ref()) {
		return
	}
	s.metrics.OrderViolations.Inc()
	s.log.Error().Str("message_id", p.row.MsgID).Str("topic", p.rec.Topic).Msg("a later message of the key was published before an earlier one, which is a dead letter now")
}
