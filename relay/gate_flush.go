package relay

import "context"

// flush sends what is held until nothing is, and opens the topic: a message admitted after that is handed to the
// producer later than all of them. opened is false when the topic was closed meanwhile, because one of them was
// refused: then the rest is deferred, and the topic stays closed. An error means that the session is ending. One of
// them was not sent, and the topic goes on flushing: what follows is held and not sent either.
func (g *Gate) flush(ctx context.Context, t *topic) (opened bool, err error) {
	g.mu.Lock()
	t.flushes++
	mine := t.flushes
	g.mu.Unlock()
	for {
		g.mu.Lock()
		if t.state != flushing || t.flushes != mine {
			g.mu.Unlock()
			return false, nil
		}
		held := t.held
		t.held = nil
		if len(held) == 0 {
			t.state = open
			t.reason = ""
			t.violated = nil
			g.mu.Unlock()
			return true, nil
		}
		g.mu.Unlock()
		left, err := g.sink.stillPending(ctx, held)
		if err != nil {
			return false, err
		}
		for _, it := range left {
			if !g.flushing(t, mine) {
				g.deferItem(t, it)
				continue
			}
			if err := g.sink.send(ctx, it); err != nil {
				return false, err
			}
		}
	}
}

func (g *Gate) flushing(t *topic, flush int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return t.state == flushing && t.flushes == flush
}
