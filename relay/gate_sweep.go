package relay

import (
	"context"
	"time"

	"example.com/outbox-relay/outbox"
)

// This file is the gate as the sweeper sees it (sweeper.Gate).

// Closed returns the topics that a general sweep must leave out, because their rows have an order to keep.
func (g *Gate) Closed() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for name, t := range g.topics {
		if t.state != open && t.state != fresh {
			names = append(names, name)
		}
	}
	return names
}

// Work returns the topics that the sweeper has to do something about: closed ones to probe, and those to drain. wait is how
// long until there will be more, 0 when nothing is known.
func (g *Gate) Work(now time.Time) (probe, drain []string, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, t := range g.topics {
		switch {
		case t.state == draining:
			drain = append(drain, name)
		case t.state != closed:
		case t.late || t.failing > 0 || t.unrecorded:
			wait = sooner(wait, settlingTime)
		case now.Before(t.probeAt):
			wait = sooner(wait, t.probeAt.Sub(now))
		default:
			probe = append(probe, name)
		}
	}
	return probe, drain, wait
}

// settlingTime is how soon to look again after a topic whose last outcome is not in the table yet.
const settlingTime = 50 * time.Millisecond

func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return b
	}
	return a
}

// BeginProbe lets the sweeper send the lone first message to a topic. It reports whether it may: false when the topic is
// open (send at once) or the stream was faster.
func (g *Gate) BeginProbe(name string) (probe, isOpen bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.topic(name)
	if t.state != fresh {
		return false, t.state == open
	}
	t.state = probing
	t.reachable = false
	return true, false
}

// ProbeAcked opens a topic after the sweeper's lone message to it. An error means that the session is ending.
func (g *Gate) ProbeAcked(ctx context.Context, name string) error {
	return g.probeAcked(ctx, g.lookup(name))
}

// Close makes the topic the sweeper's until a probe is acked; the next one not before wait has passed.
func (g *Gate) Close(name, reason string, wait time.Duration) {
	g.close(g.lookup(name), reason, time.Now().Add(wait))
}

// ProbeLater leaves a closed topic alone for a while.
func (g *Gate) ProbeLater(name string, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.topic(name).probeAt = time.Now().Add(wait)
}

// Drain tells that a closed topic may be drained: a probe was acked, or there was no row to probe with. From now on the
// sweeper sends what was deferred.
func (g *Gate) Drain(name string, acked bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.topic(name)
	if t.state == closed && !t.late {
		t.acked = acked
		g.beginDrain(t)
	}
}

// beginDrain lets the sweeper send what was deferred. The caller holds mu.
func (g *Gate) beginDrain(t *topic) {
	switch {
	case !g.relaxed:
		t.state = draining
		return
	case t.acked:
		t.state = open
	default:
		t.state = fresh
	}
	t.reason = ""
}

// Hold begins the last stretch of a drain: the stream holds the topic's new messages. It returns once no deferring UPDATE
// of the topic is on its way, or false when it is too early for handing back. Holding ends by itself when it takes long.
func (g *Gate) Hold(ctx context.Context, name string) bool {
	g.mu.Lock()
	t := g.topic(name)
	if t.state != draining || time.Now().Before(t.notBefore) {
		g.mu.Unlock()
		return false
	}
	t.state = handing
	t.holds++
	mine := t.holds
	time.AfterFunc(holdAtMost, func() { g.unhold(t, mine) })
	// A stream that had to give up holding goes on deferring: then this would not end while it is busy.
	for t.deferring > 0 && t.state == handing {
		if t.deferred == nil {
			t.deferred = make(chan struct{})
		}
		wait := t.deferred
		g.mu.Unlock()
		select {
		case <-ctx.Done():
			g.Unhold(name)
			return false
		case <-wait:
		}
		g.mu.Lock()
	}
	defer g.mu.Unlock()
	return t.state == handing
}

// Held returns which rows of a topic are held. Those that were written with a next_retry_time look deferred in the table.
func (g *Gate) Held(name string) map[outbox.Ref]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.topic(name)
	held := make(map[outbox.Ref]bool, len(t.held))
	for _, it := range t.held {
		held[it.ref] = true
	}
	return held
}

// Unhold gives up handing back: what was held is deferred, the drain goes on.
func (g *Gate) Unhold(name string) {
	t := g.lookup(name)
	g.mu.Lock()
	hold := t.holds
	g.mu.Unlock()
	g.unhold(t, hold)
}

// unhold is Unhold for one hold of several.
func (g *Gate) unhold(t *topic, hold int) {
	g.mu.Lock()
	var held []*item
	if t.state == handing && t.holds == hold {
		held = g.giveUpHolding(t)
	}
	g.mu.Unlock()
	g.deferAll(held)
	if len(held) > 0 {
		g.wake()
	}
}

// HandBack ends a drain whose rows are all sent: what was held goes first, then the topic is open. It reports false when
// the stream had to give up holding meanwhile, so that the drain must go on. An error means that the session is ending.
func (g *Gate) HandBack(ctx context.Context, name string) (bool, error) {
	g.mu.Lock()
	t := g.topic(name)
	if t.state != handing {
		g.mu.Unlock()
		return false, nil
	}
	if !t.acked {
		first := g.startOver(t)
		g.mu.Unlock()
		if first != nil {
			g.sink.probe(ctx, first)
		}
		return true, nil
	}
	t.state = flushing
	g.mu.Unlock()
	opened, err := g.flush(ctx, t)
	if opened {
		g.log.Info().Str("topic", name).Msg("topic open again")
	}
	return opened, err
}

// startOver makes a topic to which nothing was ever acked fresh again, or gives it its first held message as the probe.
// The caller holds mu.
func (g *Gate) startOver(t *topic) *item {
	t.reason = ""
	if len(t.held) == 0 {
		t.state = fresh
		return nil
	}
	t.state = probing
	t.reachable = false
	first := t.held[0]
	t.held = t.held[1:]
	return first
}
