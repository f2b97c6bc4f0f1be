// Package order keeps the order of messages that have to wait. A Line is a pure state machine: events go in, and what
// is to be done comes out. It does no I/O, knows no clock and no timer, starts no goroutine and takes no lock; the
// caller (relay.Lines) has all of that, and carries out what comes out after it has left its lock.
//
// There is a line for each topic, and one for each key that waits behind a dead letter. Both have the same states:
//
//   - Fresh: nothing was sent since the start. The next message goes alone, as a probe.
//   - Probing: a lone message is on its way. Later ones are held in memory.
//   - Open: messages are pipelined.
//   - Closed: nothing may be sent. Messages are deferred to the table, which makes them the sweeper's.
//   - Draining: the sweeper sends what was deferred, the stream still defers.
//   - Handing: the sweeper sends the last of it, the stream holds.
//   - Flushing: what was held is sent, in order, and what comes meanwhile is held behind it.
//
// A topic begins as Fresh, is Closed by a refusal, and Draining once a probe of the sweeper's was acked. A key begins
// as Draining with the death of its message, since something older of it may be left to send; it is Closed while all
// that waits is behind a dead letter, and its line is forgotten once it is Open.
//
// The guarantee is that of the messages which a line passes on, none passes an older one of the same line. Lines are
// independent of each other: probes, drains and hand-backs of many may go on side by side. An event costs the same
// however many lines there are.
//
// Nothing here may be called concurrently.
package order

import (
	"slices"
	"time"

	"example.com/outbox-relay/outbox"
)

// Name names a line: that of a key where Key is not 0, else that of the topic.
type Name struct {
	// Topic is also the key's, as far as it is known.
	Topic string
	// Key stands for one key of one topic (store.Slot).
	Key uint64
}

// Message is what waits in lines.
type Message interface {
	// Ref names the message's row.
	Ref() outbox.Ref
	// Line returns the topic, and the key in whose line the message would wait behind a dead letter, 0 when it would not.
	Line() Name
}

// State is where a line stands.
type State uint8

// The states, as the package's comment describes them.
const (
	Fresh State = iota
	Probing
	Open
	Closed
	Draining
	Handing
	Flushing
)

// String returns the state's name, as status shows it.
func (s State) String() string {
	return [...]string{"fresh", "probing", "open", "closed", "draining", "handing", "flushing"}[s]
}

// Way is where a message goes next.
type Way uint8

// The ways.
const (
	Send  Way = iota // to the producer, now
	Probe            // to Kafka, alone
	Held             // nowhere: the line has it
	Defer            // to the table, until its topic is drained
	Park             // to the table, until its key need not wait
)

// Line is one line of waiting messages.
type Line[M Message] struct {
	name   Name
	of     *Lines[M]
	state  State
	reason string // why it is closed
	held   []M    // in commit order
	// away counts messages of which it is not known yet that they are in the table: deferred and not written, or in the
	// hands of a flush. As long as there are any, nobody can say that the table shows all that waits.
	away int
	// turn numbers holds and flushes: the end of one must not be taken for that of a later one.
	turn      int
	notBefore time.Time // no handing back before: claims of a dead process may be out until then
	// unrecorded: rows from before the start may not be deferred yet.
	unrecorded bool
	probe      probe
	// refused are messages that were refused although the line was open, the first one of each key.
	refused map[string]string
	key     *key // of a key's line, else nil
}

// probe is what is known of a topic's lone messages.
type probe struct {
	reachable bool      // the brokers have answered for the topic since the stream's probe began
	acked     bool      // a message was acked since the topic was last closed
	late      bool      // the stream's probe is still out although the topic was closed meanwhile
	failing   int       // failed probes that the table does not show yet
	at        time.Time // closed: not before this is it probed by the sweeper
}

// Actions are what a caller does after an event, in the order of the fields.
type Actions[M Message] struct {
	// Probe is sent alone, and how that went is reported by ProbeAcked, ProbeDead or one of the closing events.
	// At most one.
	Probe []M
	// Defer goes to the table in this order. Each is reported by Deferred once the table shows it.
	Defer []M
	// Flush, when not 0, asks for what is held to be sent: by Take, until nothing is left.
	Flush int
	// Notify asks the sweeper to look at its work.
	Notify bool
	// Closed reports that the line was not closed before, which is logged with the Reason.
	Closed bool
	Reason string
}

// Name returns the line's name.
func (l *Line[M]) Name() Name { return l.name }

// State returns where the line stands.
func (l *Line[M]) State() State { return l.state }

// Reason returns why the line is closed, "" when it is not.
func (l *Line[M]) Reason() string { return l.reason }

// Holding returns what the line holds. It is valid until the next event.
func (l *Line[M]) Holding() []M { return l.held }

// Defers reports whether the line defers everything for now.
func (l *Line[M]) Defers() bool { return l.state == Closed || l.state == Draining }

// Admit decides about the next message. Calls come in commit order. A Defer is reported by Deferred once the table
// shows it.
func (l *Line[M]) Admit(m M) Way {
	switch l.state {
	case Open:
		return Send
	case Fresh:
		l.beginProbe()
		return Probe
	case Probing, Handing, Flushing:
		l.held = append(l.held, m)
		return Held
	case Closed, Draining:
	}
	l.away++
	return l.ToTable()
}

// ToTable returns the way by which the line defers. It may be called beside events.
func (l *Line[M]) ToTable() Way {
	if l.key != nil {
		return Park
	}
	return Defer
}

func (l *Line[M]) beginProbe() {
	l.become(Probing)
	l.probe.reachable = false
}

// become is the one place where the state changes.
func (l *Line[M]) become(s State) {
	l.state = s
	l.of.note(l)
}

// Deferring counts a message as on its way into the table that is not in the line any more: it was about to be sent,
// or was refused together with others.
func (l *Line[M]) Deferring() { l.away++ }

// Deferred reports that the table shows one deferred message more, or that one in the hands of a flush has gone on.
func (l *Line[M]) Deferred() { l.away-- }

// Failing reports that a message is about to become failed in the table. Until Failed the sweeper does not look for a
// row to probe with: it would take a later one.
func (l *Line[M]) Failing() { l.probe.failing++ }

// Failed reports that the table shows it.
func (l *Line[M]) Failed() { l.probe.failing-- }

// Reached reports whether the brokers have answered for the topic whose probe is on its way.
func (l *Line[M]) Reached(answered bool) { l.probe.reachable = answered }

// ProbeAcked reports that the lone message of a topic that was Probing is acked. What was held goes first. Where the
// topic was closed because the probe took long, it is drained instead; where it was closed for another reason, that
// stands.
func (l *Line[M]) ProbeAcked() Actions[M] {
	switch {
	case l.probe.late:
		l.probe.late, l.probe.acked = false, true
		l.beginDrain()
		return Actions[M]{Notify: true}
	case l.state == Probing:
		l.probe.acked = true
		return l.beginFlush()
	}
	return Actions[M]{}
}

// ProbeDead reports that the lone message was refused for good, by which nothing is known of the topic: the next of
// what is held is the probe, or the next that comes.
func (l *Line[M]) ProbeDead() Actions[M] {
	switch {
	case l.probe.late:
		l.probe.late = false
	case l.state == Probing:
		return l.startOver()
	}
	return Actions[M]{}
}

// startOver makes the line fresh again, or its first held message the probe.
func (l *Line[M]) startOver() Actions[M] {
	l.reason = ""
	if len(l.held) == 0 {
		l.become(Fresh)
		return Actions[M]{}
	}
	l.become(Probing)
	first := l.held[:1:1]
	l.held = l.held[1:]
	return Actions[M]{Probe: first}
}

// Refused remembers that a message of a key was refused while the topic was open, so that a later ack of the key can
// name the one that it has passed.
func (l *Line[M]) Refused(key []byte, msgID string) {
	if l.of.cfg.Relaxed {
		return
	}
	if l.refused == nil {
		l.refused = make(map[string]string)
	}
	if _, known := l.refused[string(key)]; !known && len(l.refused) < maxRefused {
		l.refused[string(key)] = msgID
	}
}

// maxRefused bounds the keys remembered per topic; a batch that is refused has seldom more.
const maxRefused = 1000

// Passed returns the msg_id of the refused message that an acked one of the same key has passed, "" when there is
// none.
func (l *Line[M]) Passed(key []byte) string {
	if l.refused == nil {
		return ""
	}
	return l.refused[string(key)]
}

// takeHeld empties the line into the table.
func (l *Line[M]) takeHeld() []M {
	held := slices.Clip(l.held)
	l.held = nil
	l.away += len(held)
	return held
}
