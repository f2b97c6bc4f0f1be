package relay

import (
	"slices"
	"time"
)

// close makes the topic the sweeper's and defers what is held. It reports whether the topic was not closed before.
func (g *Gate) close(t *topic, reason string, probeAt time.Time) bool {
	g.mu.Lock()
	held, first := g.shut(t, reason, probeAt)
	g.mu.Unlock()
	g.deferAll(held)
	if first {
		g.noteClosed(t, reason)
	}
	return first
}

// shut is close under mu: the caller defers what is returned.
func (g *Gate) shut(t *topic, reason string, probeAt time.Time) (held []*item, first bool) {
	first = t.state != closed
	held = t.held
	t.held = nil
	t.late = false
	t.acked = false
	t.state = closed
	t.wakeHold()
	t.reason = reason
	t.probeAt = probeAt
	t.deferring += len(held)
	return held, first
}

// noteClosed tells that a topic was closed.
func (g *Gate) noteClosed(t *topic, reason string) {
	g.log.Warn().Str("topic", t.name).Str("reason", reason).Msg("topic closed, its messages wait in the table")
	g.wake() // the sweeper sleeps until a time that did not know of this topic
}

// closeWith closes the topic because of a message that is not in the gate, and defers that before what is held.
func (g *Gate) closeWith(t *topic, it *item, reason string, probeAt time.Time) {
	g.mu.Lock()
	t.held = slices.Insert(t.held, 0, it)
	held, first := g.shut(t, reason, probeAt)
	g.mu.Unlock()
	g.deferAll(held)
	if first {
		g.noteClosed(t, reason)
	}
}

// closeBehind closes the topic because of the stream's next message, which has nothing that could be sent, and defers that
// behind what is held. A probe that is still out does not open the topic then, but has it drained.
func (g *Gate) closeBehind(t *topic, it *item, reason string, probeAt time.Time) {
	g.mu.Lock()
	var left []*item
	closes := false
	switch t.state {
	case probing, handing:
		left = append(g.giveUpHolding(t), it)
		t.deferring++
	case fresh, open, flushing: // under one lock: nobody may send it, or probe the topic, in between
		t.held = append(t.held, it)
		left, closes = g.shut(t, reason, probeAt)
	case closed, draining:
		left = []*item{it}
		t.deferring++
	}
	g.mu.Unlock()
	g.deferAll(left)
	if closes {
		g.noteClosed(t, reason)
	}
}

// defers reports whether a topic defers everything for now.
func (g *Gate) defers(topic string) bool {
	state := g.stateOf(topic)
	return state == closed || state == draining
}

// deferClosed defers a message if its topic defers everything, and reports whether it does.
func (g *Gate) deferClosed(t *topic, it *item) bool {
	g.mu.Lock()
	defers := t.state == closed || t.state == draining
	if defers {
		t.deferring++
	}
	g.mu.Unlock()
	if defers {
		g.sink.deferred(it)
	}
	return defers
}
