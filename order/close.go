package order

import (
	"slices"
	"time"
)

// Close makes the line the sweeper's and defers what is held. The sweeper does not probe it before probeAt.
func (l *Line[M]) Close(reason string, probeAt time.Time) Actions[M] {
	do := Actions[M]{Closed: l.state != Closed, Reason: reason}
	do.Notify = do.Closed // the sweeper sleeps until a time that did not know of this line
	do.Defer = l.takeHeld()
	l.reason = reason
	l.probe.late, l.probe.acked, l.probe.at = false, false, probeAt
	l.become(Closed)
	return do
}

// CloseWith closes the line because of its probe, which is older than what is held and is deferred before that.
func (l *Line[M]) CloseWith(m M, reason string, probeAt time.Time) Actions[M] {
	l.held = slices.Insert(l.held, 0, m)
	return l.Close(reason, probeAt)
}

// CloseBehind closes the line because of the stream's next message, which has nothing that could be sent, and defers
// that behind what is held. A probe that is still out does not open the line then, but has it drained.
func (l *Line[M]) CloseBehind(m M, reason string, probeAt time.Time) Actions[M] {
	l.held = append(l.held, m)
	switch l.state {
	case Probing, Handing:
		return Actions[M]{Defer: l.giveUp()}
	case Closed, Draining: // with nothing held but this
		return Actions[M]{Defer: l.takeHeld()}
	case Fresh, Open, Flushing:
	}
	return l.Close(reason, probeAt)
}

// ProbeSlow reports that the stream's probe takes longer than messages are held for. Where the brokers have answered
// for the topic it is closed meanwhile: they are up, so what is held would fill the windows in which other topics
// need places.
func (l *Line[M]) ProbeSlow() Actions[M] {
	if l.state != Probing || !l.probe.reachable {
		return Actions[M]{}
	}
	return Actions[M]{Defer: l.giveUp()}
}

// giveUp ends a holding that takes too long: the line defers from now on.
func (l *Line[M]) giveUp() []M {
	if l.state == Probing {
		l.reason = "probe takes long"
		l.probe.late, l.probe.at = true, time.Time{}
		l.become(Closed)
	} else {
		l.become(Draining)
	}
	return l.takeHeld()
}

// Rebuild starts the line as closed, because the table has rows of its that must go before anything newer. Those that
// a dead process may have claimed can't be told from others before notBefore, which is zero when there are none. The
// line is not probed before Recorded.
func (l *Line[M]) Rebuild(notBefore time.Time) {
	l.reason = "rows left in the table"
	l.unrecorded = true
	l.notBefore, l.probe.at = notBefore, notBefore
	l.become(Closed)
}
