package relay

import (
	"context"
	"time"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
)

// The lines as the sweeper sees them (sweeper.Lines).

// Work returns what the sweeper has to do.
func (g *Lines) Work(now time.Time) order.Work {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lines.Work(now)
}

// Closed returns the topics that a general sweep must leave out, because their rows have an order to keep.
func (g *Lines) Closed() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lines.Leaves()
}

// Begin reports that the sweeper begins with a line, and says what it may send.
func (g *Lines) Begin(name order.Name) order.Way {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.lines.At(name); l != nil {
		return l.Begin()
	}
	return order.Defer
}

// Report takes what the sweeper has come to with a line.
func (g *Lines) Report(name order.Name, o order.Outcome) {
	if l := g.at(name); l != nil {
		g.event(l, func() order.Actions[*item] { return l.Report(o, time.Now()) })
	}
}

func (g *Lines) at(name order.Name) *line {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lines.At(name)
}

// Hold begins the last stretch of a drain: the stream holds the line's new messages. It returns once none of those
// before is on its way into the table, or false when it is too early for handing back. Holding ends by itself when it
// takes long.
func (g *Lines) Hold(ctx context.Context, name order.Name) bool {
	l := g.at(name)
	if l == nil {
		return false
	}
	g.mu.Lock()
	turn, ok := l.Hold(time.Now())
	var settled chan struct{}
	if ok && l.Away() > 0 {
		settled = make(chan struct{})
		g.waits[l] = settled
	}
	g.mu.Unlock()
	if !ok {
		return false
	}
	unhold := func() { g.event(l, func() order.Actions[*item] { return l.Unhold(turn) }) }
	time.AfterFunc(holdAtMost, unhold)
	if settled == nil {
		return true
	}
	// A stream that had to give up holding goes on deferring: then this ends, too.
	select {
	case <-ctx.Done():
		unhold()
		return false
	case <-settled:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return l.State() == order.Handing && l.Turn() == turn
}

// Held returns which rows of a line are held. Those that were written with a next_retry_time look deferred in the
// table.
func (g *Lines) Held(name order.Name) map[outbox.Ref]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := make(map[outbox.Ref]bool)
	if l := g.lines.Find(name); l != nil {
		for _, it := range l.Holding() {
			held[it.ref] = true
		}
	}
	return held
}

// Open lets what is held go first, and opens the line: after the sweeper's lone message to a topic was acked, or at
// the end of a drain whose rows are all sent. It reports false when the stream had to give up holding meanwhile, so
// that the drain must go on. An error means that the session is ending.
func (g *Lines) Open(ctx context.Context, name order.Name) (bool, error) {
	l := g.at(name)
	if l == nil {
		return false, nil
	}
	drained, ok := false, false
	do := g.event(l, func() (do order.Actions[*item]) {
		drained = l.State() == order.Handing
		do, ok = l.Open()
		return do
	})
	if len(do.Probe) > 0 {
		return true, g.sink.onward(ctx, do.Probe[0], order.Probe)
	}
	if do.Flush == 0 {
		return ok, nil
	}
	opened, err := g.flush(ctx, l, do.Flush)
	if opened && drained && name.Key == 0 {
		g.log.Info().Str("topic", name.Topic).Msg("topic open again")
	}
	return opened, err
}

// flush sends what is held until nothing is, and opens the line. opened is false when the line was closed meanwhile,
// because one of them was refused: then the rest is deferred. An error means that the session is ending. One of them
// was not sent, and the line goes on flushing: what follows is held and not sent either.
func (g *Lines) flush(ctx context.Context, l *line, turn int) (opened bool, err error) {
	for {
		g.mu.Lock()
		batch, opened := l.Take(turn)
		g.settle(l)
		g.mu.Unlock()
		if len(batch) == 0 {
			return opened, nil
		}
		left, err := g.sink.stillPending(ctx, batch)
		if err != nil {
			return false, err
		}
		g.mu.Lock()
		for range len(batch) - len(left) {
			l.Deferred()
		}
		g.settle(l)
		g.mu.Unlock()
		for _, it := range left {
			if err := g.sink.onward(ctx, it, g.next(l, it, turn)); err != nil {
				return false, err
			}
		}
	}
}

// next returns where a message goes from a flush: from its key's line to its topic's, and from there to the producer,
// unless its key has begun to wait meanwhile.
func (g *Lines) next(l *line, it *item, turn int) order.Way {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !l.Flushes(turn):
		return l.ToTable()
	case l.Name().Key != 0:
		return it.topic.Admit(it)
	}
	if way, waits := g.lines.AtKey(it); waits {
		return way
	}
	return order.Send
}
