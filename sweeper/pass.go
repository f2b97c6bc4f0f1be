package sweeper

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
)

// Result counts what came of the rows of one pass.
type Result struct {
	Sent   int
	Failed int // refused for now
	Dead   int
	Parked int // behind a dead letter of their key
	// More tells that there is more to do at once.
	More bool
}

func (r *Result) add(o Result) {
	r.Sent += o.Sent
	r.Failed += o.Failed
	r.Dead += o.Dead
	r.Parked += o.Parked
	r.More = r.More || o.More
}

// Pass does everything that is due now, or as much of it as keeps one topic from holding up the others for long.
func (s *Sweeper) Pass(ctx context.Context) (Result, error) {
	start := time.Now()
	defer func() { s.metrics.Sweep.Observe(time.Since(start).Seconds()) }()
	var total Result
	work := s.lines.Work(start) // before the letters: what a topic was closed by is in the table by then
	if err := s.letters.Refresh(ctx); err != nil {
		return total, err
	}
	// What goes wrong with one topic is no reason to leave out the others, unless it is the stream that they all wait
	// for.
	var errs []error
	turn := func(work func(context.Context) (Result, error)) (goOn bool) {
		r, err := work(ctx)
		total.add(r)
		errs = append(errs, err)
		return ctx.Err() == nil && !errors.Is(err, ErrBehind)
	}
	for _, topic := range work.Probe {
		if !turn(func(ctx context.Context) (Result, error) { return s.probe(ctx, topic) }) {
			return total, errors.Join(errs...)
		}
	}
	for _, topic := range work.Drain {
		drain := func(ctx context.Context) (Result, error) {
			r, _, err := s.drain(ctx, &topicQueue{Sweeper: s, topic: topic})
			return r, err
		}
		if !turn(drain) {
			return total, errors.Join(errs...)
		}
	}
	more := false
	general := func(ctx context.Context) (Result, error) {
		r, err := s.general(ctx)
		more = r.More
		return r, err
	}
	if !turn(general) || more {
		return total, errors.Join(errs...)
	}
	turn(s.release)
	return total, errors.Join(errs...)
}

// release sends what may go of the keys that waited. It comes after a general sweep that has left nothing: a retried
// dead letter that the table shows as due is parked by then, and so goes first.
func (s *Sweeper) release(ctx context.Context) (total Result, err error) {
	for _, line := range s.lines.Work(time.Now()).Release {
		s.lines.Begin(line) // before the table is read: what comes meanwhile is not overlooked
		q := &keyQueue{Sweeper: s, name: line}
		r, blocked, err := s.drain(ctx, q)
		total.add(r)
		kind := order.Looked
		if blocked && err == nil {
			kind = order.Blocked
		}
		s.lines.Report(q.name, order.Outcome{Kind: kind})
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// general sends due rows of topics that are not closed. They never were in the binlog, or were revived by hand, so
// there is no commit order to keep: they go by id.
func (s *Sweeper) general(ctx context.Context) (Result, error) {
	closed := s.lines.Closed()
	upTo := s.looksUpTo()
	candidates, more, err := s.candidates(ctx, closed)
	if err == nil && len(candidates) == 0 && !more {
		s.reckoning.looked(upTo, closed)
	}
	if err != nil || len(candidates) == 0 {
		return Result{More: more}, err
	}
	if err := s.stream.Passed(ctx); err != nil {
		return Result{}, err
	}
	rows, err := s.rows.Claim(ctx, refs(candidates), s.cfg.Lease)
	if err != nil {
		s.hide(candidates, err)
		return Result{}, err
	}
	var total Result
	groups := byTopic(rows)
	for i, group := range groups {
		r, err := s.topic(ctx, group)
		total.add(r)
		if err != nil {
			rest := slices.Concat(groups[i+1:]...)
			s.reckoning.Take(rest...) // they were claimed, and look delayed from now on
			_, late := s.write(ctx, &batch{release: refs(rest)})
			return total, errors.Join(err, late)
		}
	}
	total.More = more || len(candidates) == s.cfg.Batch && total.Sent+total.Parked > 0
	if !more && len(candidates) < s.cfg.Batch && len(rows) == len(candidates) {
		s.reckoning.looked(upTo, closed)
	}
	return total, nil
}

// looksUpTo returns from when on a pass that begins now may miss rows: fresh ones are left to the stream.
func (s *Sweeper) looksUpTo() time.Time {
	if s.kicked {
		return time.Now()
	}
	return time.Now().Add(-s.cfg.Grace)
}

// hide leaves the topics alone whose rows may be claimed now without our knowing: one that was closed since they were
// read may have deferred them before, and what is younger would pass them.
func (s *Sweeper) hide(rows []outbox.Row, err error) {
	draining := s.lines.Work(time.Now()).Drain
	for i := range rows {
		if topic := rows[i].Topic; slices.Contains(draining, topic) {
			s.hidden(topic, err)
		} else {
			s.later(topic, s.cfg.Lease)
		}
	}
}

func refs(rows []outbox.Row) []outbox.Ref {
	refs := make([]outbox.Ref, len(rows))
	for i := range rows {
		refs[i] = rows[i].Ref()
	}
	return refs
}

// byTopic groups claimed rows by topic, each group by id.
func byTopic(rows []outbox.Row) [][]outbox.Row {
	slices.SortFunc(rows, func(a, b outbox.Row) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.ID, b.ID))
	})
	var groups [][]outbox.Row
	for start := 0; start < len(rows); {
		end := start + 1
		for end < len(rows) && rows[end].Topic == rows[start].Topic {
			end++
		}
		groups = append(groups, rows[start:end])
		start = end
	}
	return groups
}

// topic sends claimed rows of one topic that is open, or that nobody has tried yet.
func (s *Sweeper) topic(ctx context.Context, rows []outbox.Row) (Result, error) {
	b := s.prepare(ctx, rows, false)
	topic := rows[0].Topic
	var ending error
	if len(b.ready) > 0 {
		switch s.lines.Begin(order.Name{Topic: topic}) {
		case order.Probe:
			ending = s.first(ctx, topic, b)
		case order.Send:
			ending = s.publish(ctx, topic, b)
		default:
			b.releaseRest() // the stream has just closed it, or is probing it
		}
	}
	r, err := s.write(ctx, b)
	return r, errors.Join(ending, err)
}

// first sends the first of the rows alone, because nobody knows yet whether the topic takes messages, and the others
// when it does. The error is publish's.
func (s *Sweeper) first(ctx context.Context, topic string, b *batch) error {
	if !s.lone(ctx, topic, b) {
		b.releaseRest()
		return nil
	}
	if _, err := s.lines.Open(ctx, order.Name{Topic: topic}); err != nil {
		b.releaseRest()
		return err
	}
	return s.publish(ctx, topic, b)
}
