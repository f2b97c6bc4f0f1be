package order

import (
	"slices"
	"time"
)

// Config is what is promised.
type Config struct {
	// Relaxed lets new messages of a topic pass those that wait in the table: a topic that takes messages again is open
	// at once, and what was deferred goes with the next sweeps, in no order with it.
	Relaxed bool
	// Hold lets a key wait behind its dead letter. Without it only the keys are here of which an earlier process has
	// parked rows.
	Hold bool
}

// Lines are all lines of a source, and the dead letters behind which keys wait.
type Lines[M Message] struct {
	cfg    Config
	topics map[string]*Line[M]
	keys   map[uint64]*Line[M]
	// waiting are the lines that are neither fresh nor open: work and status cost as much as there are of those.
	waiting map[*Line[M]]struct{}
	letters map[letterID]*letter
	round   uint64 // of reading the dead letters
}

// NewLines returns lines of which none is known yet.
func NewLines[M Message](cfg Config) *Lines[M] {
	return &Lines[M]{
		cfg: cfg, topics: make(map[string]*Line[M]), keys: make(map[uint64]*Line[M]),
		waiting: make(map[*Line[M]]struct{}), letters: make(map[letterID]*letter),
	}
}

// note follows a line's state.
func (s *Lines[M]) note(l *Line[M]) {
	switch l.state {
	case Fresh, Open:
		delete(s.waiting, l)
		if l.key != nil {
			delete(s.keys, l.name.Key) // nothing of it is parked, held, or on its way to either
		}
	case Probing, Closed, Draining, Handing, Flushing:
		s.waiting[l] = struct{}{}
	}
}

// Topic returns a topic's line, which is made if needed.
func (s *Lines[M]) Topic(name string) *Line[M] {
	l := s.topics[name]
	if l == nil {
		l = &Line[M]{name: Name{Topic: name}, of: s}
		s.topics[name] = l
	}
	return l
}

// Find returns a line, nil when there is none.
func (s *Lines[M]) Find(name Name) *Line[M] {
	if name.Key != 0 {
		return s.keys[name.Key]
	}
	return s.topics[name.Topic]
}

// StateOf returns a topic's state without making a line for it.
func (s *Lines[M]) StateOf(topic string) State {
	if l := s.topics[topic]; l != nil {
		return l.state
	}
	return Fresh
}

// Topics returns the names of the topics that have a line.
func (s *Lines[M]) Topics() []string {
	names := make([]string, 0, len(s.topics))
	for name := range s.topics {
		names = append(names, name)
	}
	return names
}

// Keys returns how many keys wait.
func (s *Lines[M]) Keys() int { return len(s.keys) }

// Waiting returns the topics' lines that are neither fresh nor open, in no order.
func (s *Lines[M]) Waiting() []*Line[M] {
	var lines []*Line[M]
	for l := range s.waiting {
		if l.key == nil {
			lines = append(lines, l)
		}
	}
	return lines
}

// Admit decides about the stream's next message. It waits in its key's line if that waits, else it is its topic's.
func (s *Lines[M]) Admit(m M, topic *Line[M]) Way {
	if way, waits := s.AtKey(m); waits {
		return way
	}
	return topic.Admit(m)
}

// AtKey lets a message wait in the line of its key, and reports whether that waits.
func (s *Lines[M]) AtKey(m M) (way Way, waits bool) {
	if len(s.keys) == 0 {
		return Send, false
	}
	l := s.keys[m.Line().Key]
	if l == nil {
		return Send, false
	}
	way = l.Admit(m)
	if way == Park {
		l.comes(m.Ref())
	}
	return way, true
}

// takes reports whether a topic takes messages, nobody has tried yet, or it is not known which it is.
func (s *Lines[M]) takes(topic string) bool {
	state := s.StateOf(topic)
	return state == Open || state == Fresh
}

func (s *Lines[M]) allOpen(held []M) bool {
	return !slices.ContainsFunc(held, func(m M) bool { return s.StateOf(m.Line().Topic) != Open })
}

// Recorded reports that every row which was in the table before the start is deferred, so that a drain finds it.
func (s *Lines[M]) Recorded() {
	for l := range s.waiting {
		l.unrecorded = false
	}
}

// Work is what the sweeper has to do.
type Work struct {
	// Probe are closed topics to be tried with their oldest row.
	Probe []string
	// Drain are topics, and Release keys, of which something that waits in the table may be sent.
	Drain   []string
	Release []Name
	// Wait is how long until there will be more, 0 when nothing is known.
	Wait time.Duration
}

// Work returns what the sweeper has to do. Closed topics are for it to probe, draining lines for it to drain.
func (s *Lines[M]) Work(now time.Time) Work {
	var w Work
	for l := range s.waiting {
		switch {
		case l.state == Draining && l.key == nil:
			w.Drain = append(w.Drain, l.name.Topic)
		case l.state == Draining && s.takes(l.name.Topic):
			w.Release = append(w.Release, l.name)
		case l.state != Closed || l.key != nil:
		default:
			if wait := l.probeIn(now); wait == 0 {
				w.Probe = append(w.Probe, l.name.Topic)
			} else if w.Wait == 0 || wait < w.Wait {
				w.Wait = wait
			}
		}
	}
	return w
}

// Leaves returns the topics that a general sweep must leave out, because their rows have an order to keep.
func (s *Lines[M]) Leaves() []string {
	var names []string
	for l := range s.waiting {
		if l.key == nil {
			names = append(names, l.name.Topic)
		}
	}
	return names
}
