package order_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"example.com/outbox-relay/order"
)

// model plays everybody around the lines of one topic and one key of it: the stream, Kafka, the marker, the sweeper and a
// person. Half of the messages are of the key, the others of none. What it keeps is where each message is.
type model struct {
	lines   *order.Lines[message]
	topic   *order.Line[message]
	next    uint64
	poison  map[uint64]bool // refused for good
	kafka   []message
	probing *message
	marking []marking
	table   map[uint64]message // deferred
	parked  map[uint64]message
	letters map[uint64]message // dead, and nobody has decided
	gone    int                // discarded
}

// marking is a message on its way into the table.
type marking struct {
	m   message
	way order.Way
}

var modelKey = order.Name{Topic: "orders", Key: theKey}

func newModel() *model {
	m := &model{
		lines: order.NewLines[message](order.Config{Hold: true}), poison: map[uint64]bool{}, table: map[uint64]message{},
		parked: map[uint64]message{}, letters: map[uint64]message{},
	}
	m.topic = m.lines.Topic("orders")
	return m
}

// message is the stream's next.
func (m *model) message(poison bool) {
	m.next++
	msg := message{id: m.next, line: order.Name{Topic: "orders"}}
	if m.next%2 == 0 {
		msg.line.Key = theKey
	}
	m.poison[msg.id] = poison
	m.onward(msg, m.lines.Admit(msg, m.topic))
}

func (m *model) onward(msg message, way order.Way) {
	switch way {
	case order.Send:
		m.send(msg)
	case order.Probe:
		m.probing = &msg
	case order.Defer, order.Park:
		m.marking = append(m.marking, marking{msg, way})
	case order.Held:
	}
}

// send is Kafka, which says at once whether it takes a message.
func (m *model) send(msg message) {
	if m.poison[msg.id] {
		m.dies(msg)
		return
	}
	m.kafka = append(m.kafka, msg)
}

func (m *model) dies(msg message) {
	m.letters[msg.id] = msg
	l, do := m.lines.Died(msg.Ref(), msg.line)
	if l != nil {
		m.do(l, do)
	}
	m.lines.Buried(msg.Ref(), true)
}

func (m *model) do(l *order.Line[message], do order.Actions[message]) {
	for _, msg := range do.Probe {
		m.onward(msg, order.Probe)
	}
	for _, msg := range do.Defer {
		m.onward(msg, l.ToTable())
	}
	if do.Flush != 0 {
		m.flush(l, do.Flush)
	}
}

func (m *model) flush(l *order.Line[message], turn int) {
	for {
		batch, _ := l.Take(turn)
		if len(batch) == 0 {
			return
		}
		for _, msg := range batch {
			switch {
			case !l.Flushes(turn):
				m.onward(msg, l.ToTable())
			case l != m.topic:
				m.onward(msg, m.topic.Admit(msg))
			default:
				way, _ := m.lines.AtKey(msg) // Send when its key does not wait
				m.onward(msg, way)
			}
		}
	}
}

// mark writes the oldest n of what is on its way into the table.
func (m *model) mark(n int) {
	for _, w := range m.marking[:n] {
		if w.way == order.Defer {
			m.table[w.m.id] = w.m
			m.topic.Deferred()
			continue
		}
		m.parked[w.m.id] = w.m
		m.lines.Find(modelKey).Deferred()
	}
	m.marking = m.marking[n:]
}

// probe is an outcome of the stream's probe.
func (m *model) probe(refused bool) {
	if m.probing == nil {
		return
	}
	msg := *m.probing
	m.probing = nil
	way, waits := m.lines.AtKey(msg)
	switch {
	case waits:
		m.onward(msg, way)
		m.do(m.topic, m.topic.ProbeDead())
	case refused: // its row is the one by which the sweeper tries again
		m.table[msg.id] = msg
		m.do(m.topic, m.topic.Close("refused", scriptStart))
	case m.poison[msg.id]:
		m.dies(msg)
		m.do(m.topic, m.topic.ProbeDead())
	default:
		m.kafka = append(m.kafka, msg)
		m.do(m.topic, m.topic.ProbeAcked())
	}
}

// sweep is one step of the sweeper with the topic. Rows of a key that waits are parked.
func (m *model) sweep(refused bool) {
	w := m.lines.Work(scriptStart)
	switch {
	case len(w.Probe) > 0 && len(m.table) == 0:
		m.mark(len(m.marking)) // the real sweeper comes later than this, by when what was deferred is written
		if len(m.table) == 0 {
			m.topic.Drain(false)
		}
	case len(w.Probe) > 0 && refused:
		m.do(m.topic, m.topic.Close("still refused", scriptStart))
	case len(w.Probe) > 0:
		if m.sendOldest() {
			m.topic.Drain(true)
		}
	case len(w.Drain) > 0 && len(m.table) > 2:
		m.sendOldest()
	case len(w.Drain) > 0:
		m.mark(len(m.marking))
		m.topic.Hold(scriptStart)
	case m.topic.State() == order.Handing && refused:
		m.do(m.topic, m.topic.Unhold(m.topic.Turn()))
	case m.topic.State() == order.Handing && len(m.table) > 0:
		m.sendOldest()
	case m.topic.State() == order.Handing:
		do, _ := m.topic.Open()
		m.do(m.topic, do)
	}
}

// sendOldest reports whether Kafka has taken the topic's oldest row.
func (m *model) sendOldest() bool {
	msg := m.table[slices.Min(slices.Collect(maps.Keys(m.table)))]
	delete(m.table, msg.id)
	if msg.line.Key != 0 && m.lines.Waits(msg.Ref(), msg.line) {
		m.parked[msg.id] = msg
		return false
	}
	before := len(m.kafka)
	m.send(msg)
	return len(m.kafka) > before
}

// release is one step of the sweeper with the key.
func (m *model) release(giveUp bool) {
	if len(m.lines.Work(scriptStart).Release) == 0 || len(m.table) > 0 {
		return // a general sweep, or a drain, comes first
	}
	key := m.lines.Find(modelKey)
	key.Begin()
	m.mark(len(m.marking)) // the real sweeper reads once the stream has passed what is parked
	var may []uint64
	for _, id := range slices.Sorted(maps.Keys(m.parked)) {
		if m.lines.TurnOf(theKey, refOf(id)) != order.Behind {
			may = append(may, id)
		}
	}
	if len(may) > 0 {
		m.sendParked(may[0])
		return
	}
	if len(m.parked) > 0 {
		key.Blocked()
		return
	}
	turn, ok := key.Hold(scriptStart)
	if !ok {
		key.Blocked()
		return
	}
	m.mark(len(m.marking))
	if len(m.parked) > 0 || giveUp {
		m.do(key, key.Unhold(turn))
		return
	}
	m.message(false)
	m.message(giveUp)
	do, _ := key.Open()
	m.do(key, do)
}

// sendParked sends a row of the key if its topic takes messages, or nobody has tried yet.
func (m *model) sendParked(id uint64) {
	msg, before := m.parked[id], len(m.kafka)
	way := m.topic.Begin()
	if way == order.Defer {
		return
	}
	delete(m.parked, id)
	m.send(msg)
	switch {
	case way == order.Send:
	case len(m.kafka) > before:
		do, _ := m.topic.Open()
		m.do(m.topic, do)
	default:
		m.do(m.topic, m.topic.Close("nothing could be sent", scriptStart))
	}
}

// decide is what a person does about the oldest dead letter.
func (m *model) decide(retry, mended bool) {
	if len(m.letters) == 0 {
		return
	}
	msg := m.letters[slices.Min(slices.Collect(maps.Keys(m.letters)))]
	delete(m.letters, msg.id)
	m.poison[msg.id] = m.poison[msg.id] && !mended
	if msg.line.Key == 0 {
		m.gone++ // nothing waits behind it
		m.lines.Decided(msg.Ref(), false)
		return
	}
	if retry {
		m.parked[msg.id] = msg
	} else {
		m.gone++
	}
	m.lines.Decided(msg.Ref(), retry)
}

// check: the key's messages, and those of the others, reach Kafka in commit order, and each is in one place.
func (m *model) check(t *rapid.T) {
	var keyed, others []uint64
	for _, msg := range m.kafka {
		if msg.line.Key != 0 {
			keyed = append(keyed, msg.id)
		} else {
			others = append(others, msg.id)
		}
	}
	if !slices.IsSorted(keyed) || !slices.IsSorted(others) {
		t.Fatalf("order lost: %v, %v", keyed, others)
	}
	held := len(m.topic.Holding())
	if key := m.lines.Find(modelKey); key != nil {
		held += len(key.Holding())
	}
	if m.probing != nil {
		held++
	}
	if sum := len(m.kafka) + len(m.table) + len(m.parked) + len(m.marking) + len(m.letters) + m.gone + held; sum != int(m.next) {
		t.Fatalf("%d messages came in, %d are somewhere", m.next, sum)
	}
}

// heal ends all trouble: then everything gets to Kafka, and no line waits.
func (m *model) heal(t *rapid.T) {
	for range 20 * (m.next + 20) {
		m.decide(true, true)
		m.probe(false)
		m.mark(len(m.marking))
		m.sweep(false)
		m.release(false)
		m.check(t)
	}
	if m.lines.Keys() > 0 || len(m.lines.Waiting()) > 0 || len(m.kafka)+m.gone != int(m.next) {
		t.Fatalf("not healed: %d of %d, topic %s, keys %d", len(m.kafka)+m.gone, m.next, m.topic.State(), m.lines.Keys())
	}
}

// TestLinesKeepOrderAndLoseNothing: any story of a topic and a key of it.
func TestLinesKeepOrderAndLoseNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		chance := func(label string) bool { return rapid.IntRange(0, 4).Draw(t, label) == 0 }
		t.Repeat(map[string]func(*rapid.T){
			"message": func(*rapid.T) { m.message(chance("poison")) },
			"mark":    func(t *rapid.T) { m.mark(rapid.IntRange(0, len(m.marking)).Draw(t, "n")) },
			"probe":   func(*rapid.T) { m.probe(chance("refused")) },
			"slow": func(*rapid.T) {
				m.topic.Reached(true)
				m.do(m.topic, m.topic.ProbeSlow())
			},
			"refused": func(*rapid.T) {
				if m.topic.State() == order.Open {
					m.do(m.topic, m.topic.Close("refused", scriptStart))
				}
			},
			"sweep":   func(*rapid.T) { m.sweep(chance("refused")) },
			"release": func(*rapid.T) { m.release(chance("gives up")) },
			"decide":  func(*rapid.T) { m.decide(rapid.Bool().Draw(t, "retry"), rapid.Bool().Draw(t, "mended")) },
			"":        m.check,
		})
		m.heal(t)
	})
}
