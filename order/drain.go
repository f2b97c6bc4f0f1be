package order

import "time"

// Begin reports that the sweeper has messages of the line. Send: it may send them. Probe: it sends the first alone and
// reports how that went, and the stream's messages are held meanwhile. Defer: it may not. Of a key's line it says that
// the table is read now: what comes from here on is not overlooked.
func (l *Line[M]) Begin() Way {
	switch {
	case l.key != nil:
		l.key.news = false
		return Defer
	case l.state == Open:
		return Send
	case l.state == Fresh:
		l.beginProbe()
		return Probe
	}
	return Defer
}

// Later leaves a closed line alone until then.
func (l *Line[M]) Later(probeAt time.Time) { l.probe.at = probeAt }

// Drain reports that a closed topic may be drained: the sweeper's probe was acked, or there was no row to probe with.
func (l *Line[M]) Drain(acked bool) {
	if l.state == Closed && !l.probe.late {
		l.probe.acked = acked
		l.beginDrain()
	}
}

// beginDrain lets the sweeper send what was deferred. In a relaxed order what is new need not wait for that.
func (l *Line[M]) beginDrain() {
	switch {
	case !l.of.cfg.Relaxed:
		l.become(Draining)
		return
	case l.probe.acked:
		l.become(Open)
	default:
		l.become(Fresh)
	}
	l.reason = ""
}

// Hold begins the last stretch of a drain: new messages are held. turn names the hold. ok is false when it is too
// early for handing back, or a dead letter keeps the key. The table shows all that waits once Away is 0.
func (l *Line[M]) Hold(now time.Time) (turn int, ok bool) {
	if l.state != Draining || now.Before(l.notBefore) || l.key != nil && len(l.key.letters) > 0 {
		return 0, false
	}
	l.turn++
	l.become(Handing)
	return l.turn, true
}

// Away returns how many messages are on their way into the table, or in the hands of a flush.
func (l *Line[M]) Away() int { return l.away }

// Unhold gives up a hold, because it takes long or the sweeper can't go on: what was held is deferred, the drain goes
// on.
func (l *Line[M]) Unhold(turn int) Actions[M] {
	if l.state != Handing || l.turn != turn {
		return Actions[M]{}
	}
	held := l.giveUp()
	return Actions[M]{Defer: held, Notify: len(held) > 0}
}

// Turn returns the number of the last hold or flush.
func (l *Line[M]) Turn() int { return l.turn }

// HandBack ends a drain whose rows are all sent. Where a message was acked, what was held is flushed; else the first
// of it is the next probe. ok is false when the line had to give up holding meanwhile, so that the drain must go on.
func (l *Line[M]) HandBack() (do Actions[M], ok bool) {
	switch {
	case l.state != Handing:
		return do, false
	case l.key == nil && !l.probe.acked:
		l.probe.reachable = false
		return l.startOver(), true
	}
	return l.beginFlush(), true
}

// Open reports for the sweeper that what is held may go: its lone message to the topic is acked, or it has drained
// the line. ok is false when the line does not open by that.
func (l *Line[M]) Open() (do Actions[M], ok bool) {
	if l.state == Handing {
		return l.HandBack()
	}
	do = l.ProbeAcked()
	return do, do.Flush != 0
}

func (l *Line[M]) beginFlush() Actions[M] {
	l.turn++
	l.become(Flushing)
	return Actions[M]{Flush: l.turn}
}

// Take returns what a flush sends next. Each message is asked about by Flushes before it is sent. With nothing left
// the line is open: a message admitted after that is passed on later than all of them. When the line was closed
// meanwhile, nothing is returned and opened is false.
func (l *Line[M]) Take(turn int) (batch []M, opened bool) {
	if l.state != Flushing || l.turn != turn {
		return nil, false
	}
	if len(l.held) > 0 {
		if l.key != nil && !l.of.allOpen(l.held) {
			// Held by its topic's line a message would come back here, behind younger ones.
			l.become(Draining)
		}
		return l.takeHeld(), false
	}
	l.reason, l.refused = "", nil
	l.become(Open)
	return nil, true
}

// Flushes reports whether a message that Take has returned may still be sent. If so it is not the line's any more; if
// not it is deferred, and counted as that already.
func (l *Line[M]) Flushes(turn int) bool {
	if l.state != Flushing || l.turn != turn {
		return false
	}
	l.away--
	return true
}

// probeIn returns how long until the sweeper may probe a closed topic, 0 when it may now.
func (l *Line[M]) probeIn(now time.Time) time.Duration {
	if l.probe.late || l.probe.failing > 0 || l.unrecorded {
		return Settling
	}
	return max(0, l.probe.at.Sub(now))
}

// Settling is how soon to look again after a line whose last outcome is not in the table yet.
const Settling = 50 * time.Millisecond
