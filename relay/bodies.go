package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
)

// errBadBodyRef is a body_ref that names no record.
var errBadBodyRef = errors.New("correct the row's body_ref, or discard the message")

// bodies brings staged bodies into rows. One goroutine uses it.
type bodies struct {
	broker  Broker
	largest int // of the last group, in bytes
}

const (
	bodyGroup      = 64
	bodyGroupBytes = 8 << 20
)

// next returns how many bodies to read at once: as many as a group has, but fewer where they are large.
func (b *bodies) next() int {
	if b.largest == 0 {
		return bodyGroup
	}
	return min(bodyGroup, max(1, bodyGroupBytes/b.largest))
}

// fill reads the bodies of rows that have theirs staged, and returns why one could not be had, for each row.
func (b *bodies) fill(ctx context.Context, rows []*outbox.Row) []error {
	errs := make([]error, len(rows))
	refs := make([]outbox.BodyRef, 0, len(rows))
	asked := make([]int, 0, len(rows))
	for i, row := range rows {
		ref, err := outbox.ParseBodyRef(row.BodyRef)
		if err != nil {
			errs[i] = fmt.Errorf("%w: %w", err, errBadBodyRef)
			continue
		}
		refs, asked = append(refs, ref), append(asked, i)
	}
	b.largest = 0
	for n, body := range b.broker.Bodies(ctx, refs) {
		row, err := rows[asked[n]], body.Err
		if err == nil && body.MsgID != row.MsgID {
			err = fmt.Errorf("the record at %s has another msg_id: %w", refs[n], kafka.ErrBodyGone)
		}
		row.Content, errs[asked[n]] = body.Value, err
		b.largest = max(b.largest, len(body.Value))
	}
	return errs
}

// fillGroup fills rows of the stream that go on next. Brokers that are away are waited for: nothing could be sent
// anyway. When only some bodies can't be had, their rows say why.
func (p *pump) fillGroup(ctx context.Context, group []*candidate) error {
	rows := make([]*outbox.Row, len(group))
	for i, c := range group {
		rows[i] = &c.row
	}
	backoff := retry.Doubling(100*time.Millisecond, 2*time.Second).Attempts()
	for {
		errs := p.bodies.fill(ctx, rows)
		away := false
		for i, err := range errs {
			group[i].bodyless = err
			away = away || err != nil && classify(err) == retry.Unreachable
		}
		if !away || p.bodies.broker.Reachable(ctx) == nil {
			return ctx.Err()
		}
		p.flow.outage.Note(errors.Join(errs...))
		if err := retry.Wait(ctx, backoff.Next()); err != nil {
			return err
		}
	}
}

// staged returns the rows, from the first on, whose bodies are read together. Those of topics that defer everything
// are not read: a staging partition that does not answer takes seconds each time, in which nothing flows.
func (p *pump) staged(candidates []candidate, verdicts []replayVerdict) (group []*candidate, until int) {
	for i := range candidates {
		if len(group) == p.bodies.next() {
			return group, i
		}
		c := &candidates[i]
		if verdicts[i] != replayUnknown || c.row.BodyRef == "" {
			continue
		}
		if c.unread = p.flow.lines.defers(c.row.Topic); !c.unread {
			group = append(group, c)
		}
	}
	return group, len(candidates)
}

// unread brings a row on its way whose body was not read: to the table, or where all go if its topic does not defer
// any more.
func (p *pump) unread(ctx context.Context, c *candidate, origin string) error {
	it := p.item(c, origin)
	it.slot = p.flow.lines.slotOf(&c.row, p.router.Key(&c.row))
	if err := p.flow.reserve(ctx, it); err != nil {
		return err
	}
	it.topic = p.flow.lines.topic(c.row.Topic)
	if p.flow.lines.deferClosed(it.topic, it) {
		return nil
	}
	p.flow.free(it)
	p.flow.unmarked.release(1, 0)
	if err := p.fillGroup(ctx, []*candidate{c}); err != nil {
		return err
	}
	c.unread = false
	return p.row(ctx, c, origin)
}

// bodyless takes a row whose staged body can't be had. One that is gone is dead; otherwise its topic waits for it.
func (f *flow) bodyless(ctx context.Context, it *item, topic string, err error) error {
	if classify(err) == retry.Never {
		return f.refuse(ctx, it, topic, reasonOf(err), err.Error())
	}
	if err := f.reserve(ctx, it); err != nil {
		return err
	}
	it.topic = f.lines.topic(topic)
	f.lines.closeBehind(it.topic, it, err.Error(), time.Now().Add(unreachablePause))
	return nil
}

// Fill brings staged bodies into rows of the sweeper's, as many from the first on as may be in memory together, and
// returns how many that are and why one of them has none. Behind a body that may come later it reads no more: nothing
// is sent there, and each reading of a partition that does not answer takes seconds of the rows' claims.
func (p *publisher) Fill(ctx context.Context, rows []outbox.Row) (n int, errs []error) {
	errs = make([]error, 0, len(rows))
	taken, late := 0, false
	for len(errs) < len(rows) && taken < sweptBodyBytes && !late {
		rest := rows[len(errs):]
		group := make([]*outbox.Row, 0, bodyGroup)
		size := 0
		for size < len(rest) && len(group) < p.bodies.next() {
			if rest[size].BodyRef != "" {
				group = append(group, &rest[size])
			}
			size++
		}
		why := make(map[*outbox.Row]error, len(group))
		if len(group) > 0 {
			for i, err := range p.bodies.fill(ctx, group) {
				why[group[i]] = err
				late = late || err != nil && classify(err) != retry.Never
				taken += len(group[i].Content)
			}
		}
		for i := range rest[:size] {
			errs = append(errs, why[&rest[i]])
		}
	}
	return len(errs), errs
}

// sweptBodyBytes bounds the staged bodies that the sweeper has in memory at once.
const sweptBodyBytes = 32 << 20

// publisher is the producer as the sweeper sees it (sweeper.Publisher).
type publisher struct {
	flow   *flow
	tail   *tail
	bodies bodies
	gone   chan struct{}
}

// Publish hands a record to the producer that the stream uses too, so that both share one order per partition.
func (p *publisher) Publish(ctx context.Context, rec *router.Record, done func(error)) error {
	w := p.flow.unanswered.add(rec.Topic)
	return p.flow.give(ctx, rec, func(res kafka.Result) {
		w.answered.Store(true)
		if res.Err != nil && kafka.Classify(res.Err) == retry.Unreachable {
			p.flow.unknownOutcome(res.Err)
		}
		if res.Err == nil {
			p.flow.offsets.sweptAcked(rec.Topic, res.Partition, res.Offset)
		}
		done(res.Err)
	}, w)
}

// Gone is closed once the producer is closed.
func (p *publisher) Gone() <-chan struct{} { return p.gone }

// Try sends a record alone, and sees to it that what the stream has for the topic is not held for long meanwhile.
func (p *publisher) Try(ctx context.Context, topic string, rec *router.Record) error {
	a := p.flow.try(ctx, p.flow.lines.topic(topic), rec)
	if a.err == nil {
		p.flow.offsets.sweptAcked(rec.Topic, a.partition, a.offset)
	}
	return a.err
}

// Published reports whether a message was found in Kafka at the start, sent by a process that died before marking it.
func (p *publisher) Published(topic, msgID string) bool { return p.tail.has(topic, msgID) }

// Marked tells that everything published so far is marked.
func (p *publisher) Marked() { p.flow.offsets.sweptMarked() }

// Appeared reports whether a topic that did not exist when it was last tried exists now.
func (p *publisher) Appeared(ctx context.Context, topic string) bool {
	return p.flow.prober.appeared(ctx, topic)
}

// Classify says what a failure means.
func (p *publisher) Classify(err error) (retry.Class, string) { return classify(err), reasonOf(err) }
