package order

import "time"

// Outcome is what the sweeper reports of a line.
type Outcome struct {
	Kind OutcomeKind
	// Reason is why a line is closed.
	Reason string
	// Wait is for how long it is left alone.
	Wait time.Duration
}

// OutcomeKind says what has happened.
type OutcomeKind uint8

// The kinds of outcome.
const (
	Closes  OutcomeKind = iota // a message was refused, or rows are claimed that no query shows: Reason, Wait
	Later                      // there is nothing to try a closed topic with for the moment: Wait
	Drains                     // the probe of a closed topic was acked
	Empty                      // a closed topic has no row to probe with: the stream finds out for itself
	Looked                     // something of a key was sent, or may be soon
	Blocked                    // nothing of a key may be sent, for dead letters are before it
	GivesUp                    // a hold can't be brought to its end
)

// Report takes an outcome.
func (l *Line[M]) Report(o Outcome, now time.Time) Actions[M] {
	switch o.Kind {
	case Closes:
		return l.Close(o.Reason, now.Add(o.Wait))
	case Later:
		l.Later(now.Add(o.Wait))
	case Drains, Empty:
		l.Drain(o.Kind == Drains)
	case GivesUp:
		return l.Unhold(l.turn)
	case Blocked:
		l.Blocked()
	case Looked:
	}
	return Actions[M]{}
}

// At returns the line that the sweeper means: that of a topic is made if needed, of a key that does not wait any more
// it is nil. A key's topic may have become known meanwhile.
func (s *Lines[M]) At(name Name) *Line[M] {
	if name.Key == 0 {
		return s.Topic(name.Topic)
	}
	l := s.keys[name.Key]
	if l != nil && name.Topic != "" {
		l.name.Topic = name.Topic
	}
	return l
}
