package sweeper

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

const (
	// backlogLimit is how many rows of a topic are listed at once: listing sorts, so few long lists are cheaper than
	// many short ones, and a reference is small.
	backlogLimit = 50_000
	// appearsWithin is how often a topic that did not exist is looked for.
	appearsWithin = time.Second
)

// retryAt is when a closed topic that was tried is tried again, and the Kafka topic to watch for until then.
type retryAt struct {
	at    time.Time
	topic string
}

// probe tries a closed topic with its oldest row, when that is due or the topic has just come into being. An ack begins
// the drain. Between two tries the table is not asked: looking for the oldest of a million rows is not free.
func (s *Sweeper) probe(ctx context.Context, topic string) (Result, error) {
	if retry, tried := s.retries[topic]; tried && time.Now().Before(retry.at) && !s.out.Appeared(ctx, retry.topic) {
		s.gate.ProbeLater(topic, min(time.Until(retry.at), appearsWithin))
		return Result{}, nil
	}
	delete(s.retries, topic)
	row, due, err := s.oldest(ctx, topic)
	switch {
	case err != nil:
		return Result{}, err
	case row == nil:
		// Nothing of the topic waits in the table: let the stream find out for itself.
		s.gate.Drain(topic, false)
		return Result{More: true}, nil
	case !due && !s.appeared(ctx, row):
		return Result{}, nil
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

// appeared reports whether the topic that the row goes to did not exist when it was last tried, and does now. If not, the
// row's topic is left alone for a while.
func (s *Sweeper) appeared(ctx context.Context, row *outbox.Row) bool {
	rec, err := s.router.Route(row, words.PositionSweep)
	if err != nil || s.out.Appeared(ctx, rec.Topic) {
		return true
	}
	wait := s.dueIn(ctx, row)
	s.retries[row.Topic] = retryAt{at: time.Now().Add(wait), topic: rec.Topic}
	s.gate.ProbeLater(row.Topic, min(wait, appearsWithin))
	return false
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
		s.gate.ProbeLater(topic, s.cfg.Lease) // the row may be claimed, which hides it: a later one would pass it
		return Result{}, err
	case len(rows) == 0:
		s.gate.ProbeLater(topic, appearsWithin) // somebody else has the row for the moment
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
		s.gate.ProbeLater(topic, s.cfg.Lease)
	case acked:
		s.gate.Drain(topic, true)
	}
	r.More = err == nil && (acked || r.Sent+r.Dead+r.Parked > 0)
	return r, err
}

// drain sends what waits of a topic that takes messages again, by id: its failed rows, due or not, because they are the
// oldest, and the deferred ones. Once little is left the topic is handed back.
func (s *Sweeper) drain(ctx context.Context, topic string) (Result, error) {
	refs, err := s.backlog(ctx, topic)
	if err != nil {
		return Result{}, err
	}
	if len(refs) == 0 {
		return s.handBack(ctx, topic)
	}
	if err := s.stream.Passed(ctx); err != nil {
		return Result{}, err
	}
	total, clean, err := s.sendAll(ctx, topic, refs)
	switch {
	case err != nil || !clean:
		return total, err
	case len(refs) > s.cfg.Batch:
		total.More = true
		return total, nil
	}
	r, err := s.handBack(ctx, topic)
	total.add(r)
	return total, err
}

// backlog lists rows of the topic. Pending rows that nobody has deferred are still the stream's.
func (s *Sweeper) backlog(ctx context.Context, topic string) ([]outbox.Ref, error) {
	return s.rows.Backlog(ctx, store.Query{Only: topic, Early: true, Deferred: true, Limit: backlogLimit})
}

// handBackMost is how many rows the stream may hold messages for. A longer rest is drained first.
const handBackMost = 5000

// handBack sends what was deferred while the rest was being sent, with the stream holding what comes after it, and opens
// the topic. Passed is not asked here, because it would wait for what is held. Instead the stream has to have seen all that
// the backlog shows: rows that it holds are its own, also when a next_retry_time of their own makes them look deferred.
func (s *Sweeper) handBack(ctx context.Context, topic string) (Result, error) {
	if !s.gate.Hold(ctx, topic) {
		return Result{}, nil
	}
	var total Result
	for total.Sent <= handBackMost {
		refs, err := s.rest(ctx, topic)
		if err == nil && len(refs) == 0 {
			opened, err := s.gate.HandBack(ctx, topic)
			total.More = !opened
			return total, err
		}
		clean := false
		if err == nil {
			var r Result
			r, clean, err = s.sendAll(ctx, topic, refs[:min(len(refs), handBackMost)])
			total.add(r)
		}
		if !clean || err != nil {
			s.gate.Unhold(topic)
			return total, err
		}
	}
	s.gate.Unhold(topic)
	total.More = true
	return total, nil
}

// rest lists what is left to send of a topic while the stream holds what is new.
func (s *Sweeper) rest(ctx context.Context, topic string) ([]outbox.Ref, error) {
	refs, err := s.backlog(ctx, topic)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	if err := s.stream.Admitted(ctx); err != nil {
		return nil, err
	}
	held := s.gate.Held(topic)
	return slices.DeleteFunc(refs, func(ref outbox.Ref) bool { return held[ref] }), nil
}

// sendAll claims and sends the rows, a batch after the other. It stops, and clean is false, as soon as one of them was
// not acked or could not be claimed: those behind it have to wait.
func (s *Sweeper) sendAll(ctx context.Context, topic string, refs []outbox.Ref) (total Result, clean bool, err error) {
	for chunk := range slices.Chunk(refs, s.cfg.Batch) {
		if ctx.Err() != nil {
			return total, false, ctx.Err()
		}
		rows, err := s.rows.ClaimEarly(ctx, chunk, s.cfg.Lease)
		if err != nil {
			s.hidden(topic, err)
			return total, false, err
		}
		if locked, err := s.locked(ctx, topic, chunk, rows); err != nil || locked {
			return total, false, errors.Join(err, s.giveBack(ctx, topic, rows))
		}
		for _, group := range byTopic(rows) {
			b := s.prepare(ctx, group, true)
			ending := s.publish(ctx, topic, b)
			held := len(b.failed) + len(b.release)
			r, err := s.write(ctx, b)
			total.add(r)
			if err != nil {
				s.hidden(topic, err)
			}
			if err = errors.Join(ending, err); err != nil || held > 0 {
				return total, false, err
			}
		}
	}
	return total, true, nil
}

// hidden leaves a topic alone until the claims of rows are over whose outcome could not be written: till then a query does
// not show them, and what is younger would pass them.
func (s *Sweeper) hidden(topic string, err error) {
	s.gate.Close(topic, "claimed rows are not written: "+err.Error(), s.cfg.Lease)
}

// locked reports whether one of the rows that could not be claimed still waits: somebody has locked it for the moment. Those
// that are not listed any more were settled by somebody else.
func (s *Sweeper) locked(ctx context.Context, topic string, wanted []outbox.Ref, claimed []outbox.Row) (bool, error) {
	if len(claimed) == len(wanted) {
		return false, nil
	}
	missing := make(map[outbox.Ref]bool, len(wanted))
	for _, ref := range wanted {
		missing[ref] = true
	}
	for i := range claimed {
		delete(missing, claimed[i].Ref())
	}
	waiting, err := s.backlog(ctx, topic)
	return err == nil && slices.ContainsFunc(waiting, func(ref outbox.Ref) bool { return missing[ref] }), err
}

// giveBack releases claimed rows that were not sent.
func (s *Sweeper) giveBack(ctx context.Context, topic string, rows []outbox.Row) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := s.write(ctx, &batch{release: refs(rows)})
	if err != nil {
		s.hidden(topic, err)
	}
	return err
}
