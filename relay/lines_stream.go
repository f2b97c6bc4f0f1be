package relay

import (
	"context"
	"time"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// What the stream's side reports to the lines: the prober, the producer's results, and the marker.

// holdAtMost is how long a topic's messages are held while its probe is on its way, or while it is being handed back.
// A probe takes milliseconds, but the held messages fill the window in which other topics need places too.
const holdAtMost = time.Second

// probeIsSlow reports that the probe of a topic takes longer than messages are held for.
func (g *Lines) probeIsSlow(t *line) {
	do := g.event(t, t.ProbeSlow)
	if held := len(do.Defer); held > 0 {
		g.log.Warn().Str("topic", t.Name().Topic).Int("held", held).Msg("probe takes long, the topic's messages wait in the table")
	}
}

// reached reports whether the brokers have answered for a topic whose probe is on its way.
func (g *Lines) reached(t *line, answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.Reached(answered)
}

// probeAcked reports that a topic's probe is acked: what was held meanwhile goes first, in order. The error is
// flush's.
func (g *Lines) probeAcked(ctx context.Context, t *line) error {
	if do := g.event(t, t.ProbeAcked); do.Flush != 0 {
		_, err := g.flush(ctx, t, do.Flush)
		return err
	}
	return nil
}

// probeDead reports that a topic's probe was given up for good, and returns the next one, nil when there is none.
func (g *Lines) probeDead(t *line) *item {
	if do := g.event(t, t.ProbeDead); len(do.Probe) > 0 {
		return do.Probe[0]
	}
	return nil
}

// close makes the topic the sweeper's and defers what is held. It reports whether the topic was not closed before.
func (g *Lines) close(t *line, reason string, probeAt time.Time) bool {
	return g.event(t, func() order.Actions[*item] { return t.Close(reason, probeAt) }).Closed
}

// closeWith closes the topic because of its probe, which is deferred before what is held.
func (g *Lines) closeWith(t *line, it *item, reason string, probeAt time.Time) {
	g.event(t, func() order.Actions[*item] { return t.CloseWith(it, reason, probeAt) })
}

// closeBehind closes the topic because of the stream's next message, which is deferred behind what is held.
func (g *Lines) closeBehind(t *line, it *item, reason string, probeAt time.Time) {
	g.event(t, func() order.Actions[*item] { return t.CloseBehind(it, reason, probeAt) })
}

// defers reports whether a topic defers everything for now.
func (g *Lines) defers(topic string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lines.Find(order.Name{Topic: topic})
	return l != nil && l.Defers()
}

// deferClosed defers a message if its topic defers everything, and reports whether it does.
func (g *Lines) deferClosed(t *line, it *item) bool {
	g.mu.Lock()
	defers := t.Defers()
	if defers {
		t.Deferring()
	}
	g.mu.Unlock()
	if defers {
		g.sink.leave(it, order.Defer)
	}
	return defers
}

// deferItem defers a message that is not in its topic's line any more: it was refused together with others.
func (g *Lines) deferItem(t *line, it *item) {
	g.mu.Lock()
	t.Deferring()
	g.mu.Unlock()
	g.sink.leave(it, order.Defer)
}

// written reports that the table shows what was deferred or parked.
func (g *Lines) written(it *item, way order.Way) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := it.topic
	if way == order.Park {
		l = g.lines.Find(it.Line())
	}
	if l != nil {
		l.Deferred()
		g.settle(l)
	}
}

// willFail reports that a message of the topic is about to become failed, and failed that the table says so.
func (g *Lines) willFail(t *line) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.Failing()
}

func (g *Lines) failed(t *line) {
	g.Spent() // it may have become dead by that; before the sweeper looks at the topic again
	g.mu.Lock()
	defer g.mu.Unlock()
	t.Failed()
}

// refusedOpen remembers that a message of an open topic was refused, so that a later ack of the same key can name the
// message that it has passed.
func (g *Lines) refusedOpen(t *line, key []byte, msgID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.Refused(key, msgID)
}

// overtook returns the msg_id of an earlier message of its key that a message which was just acked has passed: one
// that was refused, or a dead letter. "" when there is none.
func (g *Lines) overtook(it *item) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if earlier := it.topic.Passed(it.rec.Key); earlier != "" {
		return earlier
	}
	return g.lines.Overtook(it)
}

// died reports that a message is a dead letter, before the table is changed: from now on its key waits.
func (g *Lines) died(ref outbox.Ref, topic string, slot store.Slot) {
	if !g.hold {
		return
	}
	g.mu.Lock()
	l, do := g.lines.Died(ref, order.Name{Topic: topic, Key: uint64(slot)})
	g.settle(l)
	g.mu.Unlock()
	g.carryOut(l, do)
}

// Buried reports whether the table could be changed to say that a message is a dead letter.
func (g *Lines) Buried(ref outbox.Ref, written bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines.Buried(ref, written)
}

// Spent reports that messages may have become dead by spending their retries.
func (g *Lines) Spent() { g.spent.Store(true) }
