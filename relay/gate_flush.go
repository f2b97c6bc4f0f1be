package relay

import "context"

// flush sends what is held until nothing is, and opens the topic: a message admitted after that is handed to the
// producer later than all of them. It reports false when the topic was closed meanwhile, because one of them was refused:
// then the rest is deferred, and the topic stays closed.
func (g *Gate) flush(ctx context.Context, t *topic) bool {
	g.mu.Lock()
	t.flushes++
	mine := t.flushes
	g.mu.Unlock()
	for {
		g.mu.Lock()
		if t.state != flushing || t.flushes != mine {
			g.mu.Unlock()
			return false
		}
		held := t.held
		t.held = nil
		if len(held) == 0 {
			t.state = open
			t.reason = ""
			t.violated = nil
			g.mu.Unlock()
			return true
		}
		g.mu.Unlock()
		for _, it := range g.sink.stillPending(ctx, held) {
			if g.flushing(t, mine) {
				g.sink.send(ctx, it)
			} else {
				g.deferItem(t, it)
			}
		}
	}
}

func (g *Gate) flushing(t *topic, flush int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return t.state == flushing && t.flushes == flush
}
