package relay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/router"
)

// pump takes transactions from the reader, in commit order, and brings each of their rows on its way. It is the only
// caller of Tracker.Begin and of Lines.admit, which is what keeps the order.
type pump struct {
	server  string
	reader  Reader
	router  *router.Router
	tracker *Tracker
	flow    *flow
	replay  *replay
	bodies  bodies
	check   func() error // an error when nothing may be sent any more
	// taken is the end of the last transaction whose rows were all taken from the reader.
	taken position.End
	alarm alarm
	// delay is how long after its commit a row with a next_retry_time is due.
	delay   func(nextRetry string, committed time.Time) time.Duration
	leaving leaving
}

// alarm wakes the sweeper.
type alarm interface {
	// Expect asks for passes that look for rows which the stream has read of and does not bring.
	Expect()
	// WakeIn asks for one when a row becomes due.
	WakeIn(d time.Duration)
}

// leaving is what the pump leaves to the sweeper.
type leaving struct {
	// everything that was pending at the start is.
	everything bool
	may        func() bool // end the session because of rows that can't be read
	notes      *recoveries
}

// run pumps until ctx ends or the stream can't go on.
func (p *pump) run(ctx context.Context) error {
	for {
		txn, err := p.next(ctx)
		if err != nil {
			return err
		}
		err = p.transaction(ctx, txn)
		if err = errors.Join(err, txn.Close()); err != nil {
			return err
		}
	}
}

// bodyGatherTime is how long a row with a staged body waits for others whose bodies can be read with its own.
const bodyGatherTime = time.Millisecond

// next returns the next transaction. Rows that are looked up do not wait for more of them longer than a moment.
func (p *pump) next(ctx context.Context) (*assemble.Transaction, error) {
	if !p.replay.waiting() {
		return p.reader.Next(ctx)
	}
	gather := gatherTime
	if p.replay.over {
		gather = bodyGatherTime
	}
	moment, cancel := context.WithTimeout(ctx, gather)
	defer cancel()
	txn, err := p.reader.Next(moment)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return txn, err
	}
	if err := p.lookUp(ctx); err != nil {
		return nil, err
	}
	p.tracker.Admitted(p.taken)
	return p.reader.Next(ctx)
}

func (p *pump) transaction(ctx context.Context, txn *assemble.Transaction) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.leaves(txn) {
		return errLeft
	}
	p.count(txn)
	x := p.tracker.Begin(txn.End, txn.Len())
	n := 0
	for row, err := range txn.Rows() {
		if err != nil {
			return fmt.Errorf("rows of the transaction that ends at %s: %w", txn.End, err)
		}
		n++
		c := candidate{txn: x, row: row, committed: txn.CommittedAt, end: txn.End, number: n}
		if err := p.take(ctx, &c); err != nil {
			return err
		}
	}
	p.taken = txn.End
	if p.replay.endsAt(txn.End) {
		if err := p.lookUp(ctx); err != nil {
			return err
		}
		p.replay.finish(txn.End)
	}
	if !p.replay.waiting() {
		p.tracker.Admitted(txn.End)
	}
	if txn.Kick {
		p.alarm.Expect()
	}
	return nil
}

// take brings one row on its way: in the replay window once it was looked up, with a staged body once that is here,
// and never before another that waits for either.
func (p *pump) take(ctx context.Context, c *candidate) error {
	if p.replay.over && c.row.BodyRef == "" && !p.replay.waiting() {
		return p.row(ctx, c, words.OriginStream)
	}
	if full := p.replay.add(*c); full {
		return p.lookUp(ctx)
	}
	return nil
}

// lookUp asks about the rows that wait and brings those on their way that still have to be sent.
func (p *pump) lookUp(ctx context.Context) error {
	origin := words.OriginReplay
	if p.replay.over {
		origin = words.OriginStream
	}
	candidates, verdicts, err := p.replay.look(ctx)
	if err != nil {
		return err
	}
	filled := 0
	for i := range candidates {
		c := &candidates[i]
		if i == filled {
			group, more := p.staged(candidates[i:], verdicts[i:])
			if filled += more; len(group) > 0 {
				if err := p.fillGroup(ctx, group); err != nil {
					return err
				}
			}
		}
		switch verdicts[i] {
		case replaySettled:
			p.flow.metrics.Suppressed.WithLabelValues(words.SuppressedByStatus).Inc()
			c.txn.Settle(1)
		case replaySweepers:
			c.txn.Settle(1)
		case replayInKafka:
			p.flow.metrics.Suppressed.WithLabelValues(words.SuppressedByTail).Inc()
			err = p.flow.alreadyPublished(ctx, p.item(c, words.OriginReplay))
		case replayUnknown:
			err = p.row(ctx, c, origin)
		}
		if err != nil {
			return err
		}
		candidates[i] = candidate{} // or the bodies of all of them would be in memory together
	}
	return nil
}

// count tells the metrics what the transaction was.
func (p *pump) count(txn *assemble.Transaction) {
	if txn.Len() > 0 {
		p.flow.metrics.Transactions.WithLabelValues(words.TransactionCommitted).Inc()
	}
	p.tellMissed(txn)
	p.leaving.notes.missed(txn)
}

// row brings one row on its way. An error means that the stream can't go on, never that something is wrong with the
// row.
func (p *pump) row(ctx context.Context, c *candidate, origin string) error {
	if c.row.NextRetry != "" {
		if wait := p.delay(c.row.NextRetry, c.committed); wait > 0 {
			c.txn.Settle(1) // the table says when, and the sweeper reads it
			p.alarm.WakeIn(wait)
			return nil
		}
	}
	if c.unread {
		return p.unread(ctx, c, origin)
	}
	it := p.item(c, origin)
	if c.bodyless != nil {
		it.slot = p.flow.lines.slotOf(&c.row, p.router.Key(&c.row))
		return p.flow.bodyless(ctx, it, c.row.Topic, c.bodyless)
	}
	rec, err := p.router.Route(&c.row, p.position(c.end, c.number))
	if refusal, ok := errors.AsType[*router.Refusal](err); ok {
		it.slot = p.flow.lines.slotOf(&c.row, p.router.Key(&c.row))
		return p.flow.refuse(ctx, it, c.row.Topic, refusal.Reason, refusal.Text)
	}
	if err != nil {
		return err
	}
	it.rec = rec
	it.dest = rec.Topic
	it.slot = p.flow.lines.slotOf(&c.row, rec.Key)
	it.topic = p.flow.lines.topic(c.row.Topic)
	return p.flow.publish(ctx, it)
}

func (p *pump) item(c *candidate, origin string) *item {
	return &item{
		ref: c.row.Ref(), txn: c.txn, source: source{origin: origin, committed: c.committed},
		retries: c.row.RetryCount, hasNextRetry: c.row.NextRetry != "",
	}
}

// position is the record's outbox_position: server/file:pos/row.
func (p *pump) position(end position.End, n int) string {
	b := make([]byte, 0, len(p.server)+len(end.File)+32)
	b = append(b, p.server...)
	b = append(b, '/')
	b = append(b, end.File...)
	b = append(b, ':')
	b = strconv.AppendUint(b, end.Pos, 10)
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(n), 10)
	return string(b)
}
