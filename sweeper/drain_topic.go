package sweeper

import (
	"context"
	"errors"
	"slices"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// topicQueue is what waits of a topic that takes messages again, by id: its failed rows, due or not, because they are
// the oldest, and the deferred ones.
type topicQueue struct {
	*Sweeper
	topic string
	refs  []outbox.Ref
}

// backlogLimit is how many rows of a topic are listed at once: listing sorts, so few long lists are cheaper than
// many short ones, and a reference is small.
const backlogLimit = 50_000

func (q *topicQueue) line() order.Name { return order.Name{Topic: q.topic} }

func (q *topicQueue) rounds() int { return 1 }

// list lists rows of the topic. For the last stretch the stream has to have seen all that the list shows: rows that
// it holds are its own, also when a next_retry_time of their own makes them look deferred.
func (q *topicQueue) list(ctx context.Context, last bool) (found listing, err error) {
	q.refs, err = q.backlog(ctx, q.topic)
	if err != nil || len(q.refs) == 0 {
		return found, err
	}
	if !last {
		return listing{rows: len(q.refs), more: len(q.refs) > q.cfg.Batch}, q.stream.Passed(ctx)
	}
	if err := q.stream.Admitted(ctx); err != nil {
		return found, err
	}
	held := q.lines.Held(q.line())
	q.refs = slices.DeleteFunc(q.refs, func(ref outbox.Ref) bool { return held[ref] })
	q.refs = q.refs[:min(len(q.refs), handBackMost)]
	return listing{rows: len(q.refs)}, nil
}

// backlog lists rows of a topic. Pending rows that nobody has deferred are still the stream's.
func (s *Sweeper) backlog(ctx context.Context, topic string) ([]outbox.Ref, error) {
	return s.rows.Backlog(ctx, store.Query{Only: topic, Early: true, Deferred: true, Limit: backlogLimit})
}

// send claims and sends the rows, a batch after the other.
func (q *topicQueue) send(ctx context.Context) (total Result, clean bool, err error) {
	for chunk := range slices.Chunk(q.refs, q.cfg.Batch) {
		if ctx.Err() != nil {
			return total, false, ctx.Err()
		}
		rows, err := q.rows.ClaimEarly(ctx, chunk, q.cfg.Lease)
		if err != nil {
			q.hidden(q.topic, err)
			return total, false, err
		}
		if locked, err := q.locked(ctx, chunk, rows); err != nil || locked {
			return total, false, errors.Join(err, q.giveBack(ctx, rows))
		}
		for _, group := range byTopic(rows) {
			b := q.prepare(ctx, group, true)
			ending := q.publish(ctx, q.topic, b)
			clean := len(b.failed)+len(b.release) == 0
			r, err := q.finish(ctx, q.topic, b, ending)
			total.add(r)
			if err != nil || !clean {
				return total, false, err
			}
		}
	}
	return total, true, nil
}

// finish writes what came of a batch of a line. ending is why it was cut short.
func (s *Sweeper) finish(ctx context.Context, topic string, b *batch, ending error) (Result, error) {
	r, err := s.write(ctx, b)
	if err != nil {
		s.hidden(topic, err)
	}
	return r, errors.Join(ending, err)
}

// hidden leaves a topic alone until the claims of rows are over whose outcome could not be written: till then a query
// does not show them, and what is younger would pass them.
func (s *Sweeper) hidden(topic string, err error) {
	s.closes(topic, "claimed rows are not written: "+err.Error(), s.cfg.Lease)
}

// locked reports whether one of the rows that could not be claimed still waits: somebody has locked it for the
// moment. Those that are not listed any more were settled by somebody else.
func (q *topicQueue) locked(ctx context.Context, wanted []outbox.Ref, claimed []outbox.Row) (bool, error) {
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
	waiting, err := q.backlog(ctx, q.topic)
	return err == nil && slices.ContainsFunc(waiting, func(ref outbox.Ref) bool { return missing[ref] }), err
}

// giveBack releases claimed rows that were not sent.
func (q *topicQueue) giveBack(ctx context.Context, rows []outbox.Row) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := q.finish(ctx, q.topic, &batch{release: refs(rows)}, nil)
	return err
}
