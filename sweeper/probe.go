package sweeper

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// This file tries closed topics.

// appearsWithin is how often a topic that did not exist is looked for.
const appearsWithin = time.Second

// retryAt is when a closed topic that was tried is tried again, and the Kafka topic to watch for until then.
type retryAt struct {
	at    time.Time
	topic string
}

// probe tries a closed topic with its oldest row, when that is due or the topic has just come into being. An ack
// begins the drain. Between two tries the table is not asked: looking for the oldest of a million rows is not free.
func (s *Sweeper) probe(ctx context.Context, topic string) (Result, error) {
	if retry, tried := s.retries[topic]; tried && time.Now().Before(retry.at) && !s.broker.Appeared(ctx, retry.topic) {
		s.later(topic, min(time.Until(retry.at), appearsWithin))
		return Result{}, nil
	}
	delete(s.retries, topic)
	row, due, err := s.oldest(ctx, topic)
	switch {
	case err != nil:
		return Result{}, err
	case row == nil:
		// Nothing of the topic waits in the table: let the stream find out for itself.
		s.reportTopic(topic, order.Outcome{Kind: order.Empty})
		return Result{More: true}, nil
	case !due:
		if wait := s.waitsFor(ctx, row); wait > 0 {
			s.later(topic, min(wait, appearsWithin))
			return Result{}, nil
		}
	}
	// A failed row is one that the stream has passed: it, or a person, has made it so. Of others nobody knows.
	if row.Status != outbox.Failed {
		if err := s.stream.Passed(ctx); err != nil {
			return Result{}, err
		}
	}
	return s.probeWith(ctx, topic, row.Ref())
}

// oldest returns the row that stands first in a closed topic, nil when there is none, and whether it is due.
func (s *Sweeper) oldest(ctx context.Context, topic string) (row *outbox.Row, due bool, err error) {
	for _, early := range []bool{false, true} {
		rows, err := s.rows.Candidates(ctx, store.Query{Only: topic, OldestOnly: true, Early: early, Limit: 1})
		if err != nil {
			return nil, false, err
		}
		if len(rows) > 0 {
			oldest := slices.MinFunc(rows, func(a, b outbox.Row) int { return cmp.Compare(a.ID, b.ID) })
			return &oldest, !early, nil
		}
	}
	return nil, false, nil
}

// lookAgain is how soon the table is asked again about a row whose time can't be read.
const lookAgain = 5 * time.Second

// waitsFor returns how long the topic of a row that is not due is left alone, 0 when it need not be: what the row
// goes to did not exist when it was last tried, and does now.
func (s *Sweeper) waitsFor(ctx context.Context, row *outbox.Row) time.Duration {
	rec, err := s.router.Route(row, words.PositionSweep)
	if err != nil || s.broker.Appeared(ctx, rec.Topic) {
		return 0
	}
	wait := s.dueIn(ctx, row)
	s.retries[row.Topic] = retryAt{at: time.Now().Add(wait), topic: rec.Topic}
	return wait
}

// dueIn returns how long until a row is due, by the database's clock; lookAgain when that can't be told.
func (s *Sweeper) dueIn(ctx context.Context, row *outbox.Row) time.Duration {
	const civil = "2006-01-02 15:04:05"
	now, err := s.rows.Now(ctx)
	if err != nil {
		return lookAgain
	}
	at, err := time.Parse(civil, now)
	due, dueErr := time.Parse(civil, row.NextRetry)
	if err != nil || dueErr != nil {
		return lookAgain
	}
	return max(due.Sub(at), appearsWithin/10)
}

func (s *Sweeper) probeWith(ctx context.Context, topic string, ref outbox.Ref) (Result, error) {
	rows, err := s.rows.ClaimEarly(ctx, []outbox.Ref{ref}, s.cfg.Lease)
	switch {
	case err != nil:
		// The row may be claimed, which hides it: a later one would pass it.
		s.later(topic, s.cfg.Lease)
		return Result{}, err
	case len(rows) == 0:
		s.later(topic, appearsWithin) // somebody else has the row for the moment
		return Result{}, nil
	}
	var unknown error
	b := s.prepareWith(ctx, rows, true, func(row *outbox.Row) store.Slot {
		slot, err := s.waitsForFirst(ctx, row)
		unknown = err
		return slot
	})
	acked := len(b.ready) > 0 && s.lone(ctx, topic, b)
	r, err := s.write(ctx, b)
	err = errors.Join(err, unknown)
	switch {
	case err != nil:
		s.later(topic, s.cfg.Lease)
	case acked:
		s.reportTopic(topic, order.Outcome{Kind: order.Drains})
	}
	r.More = err == nil && (acked || r.Sent+r.Dead+r.Parked > 0)
	return r, err
}

// waitsForFirst is waits for the row with which a closed topic is tried: the first of its key need not wait for that
// one.
func (s *Sweeper) waitsForFirst(ctx context.Context, row *outbox.Row) (store.Slot, error) {
	slot := s.waits(row)
	if slot == 0 || s.letters.TurnOf(order.Name{Key: uint64(slot)}, row.Ref()) == order.Behind {
		return slot, nil
	}
	parked, err := s.rows.Parked(ctx, slot, 1)
	if err != nil || len(parked) > 0 && (parked[0].Table != row.Table || parked[0].ID < row.ID) {
		return slot, err
	}
	return 0, nil
}

// reportTopic reports what came of a topic.
func (s *Sweeper) reportTopic(topic string, o order.Outcome) {
	s.lines.Report(order.Name{Topic: topic}, o)
}

// later leaves a closed topic alone for a while.
func (s *Sweeper) later(topic string, wait time.Duration) {
	s.reportTopic(topic, order.Outcome{Kind: order.Later, Wait: wait})
}

// closes closes a topic, which is left alone for a while.
func (s *Sweeper) closes(topic, reason string, wait time.Duration) {
	s.reportTopic(topic, order.Outcome{Kind: order.Closes, Reason: reason, Wait: wait})
}
