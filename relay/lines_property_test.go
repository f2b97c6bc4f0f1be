package relay

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/outbox-relay/order"
)

// linesModel plays everybody around a gate with one topic: the pump, the prober, the marker, the sweeper and Kafka.
// What it keeps is where each message is.
//
// Once it stops, the producer takes or refuses each message by chance, and whoever is refused ends.
type linesModel struct {
	*linesBench
	takes   func() bool // nil: it does not stop
	refused []uint64    // what the producer did not take
	pumped  bool        // the pump has ended
	swept   bool        // the sweeper has ended
	probing *item
	marking []*item  // deferring UPDATEs on their way
	failed  *item    // a failed probe's UPDATE on its way
	table   []uint64 // the sweeper's rows
	kafka   []uint64
	dead    int
}

func (m *linesModel) send(_ context.Context, it *item) error { return m.produce(it.ref.ID) }

func (m *linesModel) produce(id uint64) error {
	if m.takes != nil && !m.takes() {
		m.refused = append(m.refused, id)
		return errBroken
	}
	m.kafka = append(m.kafka, id)
	return nil
}

func (m *linesModel) onward(ctx context.Context, it *item, way order.Way) error {
	switch way {
	case order.Send:
		return m.send(ctx, it)
	case order.Probe:
		m.probing = it
	case order.Defer, order.Park:
		m.leave(it, way)
	case order.Held:
	}
	return nil
}

func (m *linesModel) leave(it *item, _ order.Way) { m.marking = append(m.marking, it) }
func (m *linesModel) stillPending(_ context.Context, items []*item) ([]*item, error) {
	return items, nil
}

func newLinesModel() *linesModel {
	m := &linesModel{linesBench: newLinesBench()}
	m.Lines.sink = m
	return m
}

func (m *linesModel) message() {
	if m.pumped {
		return
	}
	m.next++
	it := itemOf(m.tracker, m.next, m.topic, "k")
	m.pumped = m.onward(context.Background(), it, m.admit(it)) != nil
}

// mark settles the oldest n of the deferring UPDATEs; a failed probe's comes before them, because it was asked for
// first.
func (m *linesModel) mark(n int) {
	if m.failed != nil {
		m.table = append(m.table, m.failed.ref.ID)
		m.failed = nil
		m.Lines.failed(m.topic)
	}
	for _, it := range m.marking[:n] {
		m.table = append(m.table, it.ref.ID)
		m.deferSettled(m.topic)
	}
	m.marking = m.marking[n:]
}

func (m *linesModel) outcome(which string) {
	it := m.probing
	if it == nil {
		return
	}
	m.probing = nil
	switch which {
	case "acked":
		m.kafka = append(m.kafka, it.ref.ID)
		_ = m.probeAcked(context.Background(), m.topic) // the prober ends with it anyway
	case "refused":
		m.willFail(m.topic)
		m.failed = it
		m.close(m.topic, which, time.Time{})
	case "dead":
		m.dead++
		m.probing = m.probeDead(m.topic)
	}
}

// sweep is one step of the sweeper.
func (m *linesModel) sweep(t *rapid.T) {
	if m.swept {
		return
	}
	probe, drain, _ := m.Work(time.Now())
	slices.Sort(m.table)
	switch {
	case len(probe) > 0 && len(m.table) == 0:
		// The real sweeper comes later than this, by when what was deferred is written.
		m.mark(len(m.marking))
		if len(m.table) == 0 {
			m.Drain("orders", false)
		}
	case len(probe) > 0 && rapid.Bool().Draw(t, "acked"):
		m.sendOldest()
		m.Drain("orders", true)
	case len(probe) > 0:
		m.Close("orders", "still gone", 0)
	case len(drain) > 0 && len(m.table) > 2:
		m.sendOldest()
	case len(drain) > 0:
		m.hold()
	case m.topic.State() == order.Handing && rapid.IntRange(0, 4).Draw(t, "give up") == 0:
		m.Unhold("orders")
	case m.topic.State() == order.Handing && len(m.table) > 0:
		m.sendOldest()
	case m.topic.State() == order.Handing:
		_, err := m.HandBack(context.Background(), "orders")
		m.swept = err != nil
	}
}

// hold is what Hold does, without the timer that would interfere: the sweeper's giving up stands for it.
func (m *linesModel) hold() {
	m.mark(len(m.marking))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.topic.Hold(time.Now())
}

func (m *linesModel) sendOldest() {
	slices.Sort(m.table)
	if m.swept = m.produce(m.table[0]) != nil; !m.swept {
		m.table = m.table[1:]
	}
}

// check: messages reach Kafka in commit order, none behind one that was refused, and each is in one place.
func (m *linesModel) check(t *rapid.T) {
	if !slices.IsSorted(m.kafka) {
		t.Fatalf("order lost: %v, %s", m.kafka, m.topic.State())
	}
	if len(m.refused) > 0 {
		if len(m.kafka) > 0 && slices.Max(m.kafka) > slices.Min(m.refused) {
			t.Fatalf("passed one that was not handed over: %v, refused %v, %s", m.kafka, m.refused, m.topic.State())
		}
		return // what a flush had in its hands is nowhere: the next session reads it again
	}
	sum := len(m.kafka) + len(m.table) + len(m.marking) + m.dead + len(m.topic.Holding())
	if m.probing != nil {
		sum++
	}
	if m.failed != nil {
		sum++
	}
	if sum != int(m.next) {
		t.Fatalf("%d messages came in, %d are somewhere (%s)", m.next, sum, m.topic.State())
	}
	if m.topic.Away() != len(m.marking) {
		t.Fatalf("the gate counts %d deferring updates, there are %d", m.topic.Away(), len(m.marking))
	}
}

// TestGateKeepsOrderAndLosesNothing: any story of one topic, with single messages refused, dead and late.
func TestGateKeepsOrderAndLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newLinesModel()
		t.Repeat(map[string]func(*rapid.T){
			"message": func(*rapid.T) { m.message() },
			"mark":    func(t *rapid.T) { m.mark(rapid.IntRange(0, len(m.marking)).Draw(t, "n")) },
			"probe": func(t *rapid.T) {
				m.outcome(rapid.SampledFrom([]string{"acked", "refused", "dead"}).Draw(t, "outcome"))
			},
			"slow": func(t *rapid.T) {
				if m.probing != nil {
					m.reached(m.topic, rapid.Bool().Draw(t, "reachable"))
					m.probeIsSlow(m.topic)
				}
			},
			"sweep": m.sweep,
			"stop": func(t *rapid.T) {
				m.takes = func() bool { return rapid.Bool().Draw(t, "taken") }
			},
			"": m.check,
		})
		if m.takes == nil {
			m.heal(t)
		}
	})
}

// heal ends all trouble: then everything gets to Kafka and the topic stops being special.
func (m *linesModel) heal(t *rapid.T) {
	for range 10 * (m.next + 10) {
		m.outcome("acked")
		m.mark(len(m.marking))
		probe, _, _ := m.Work(time.Now())
		slices.Sort(m.table)
		switch {
		case len(probe) > 0 && len(m.table) > 0:
			m.sendOldest()
			m.Drain("orders", true)
		case len(probe) > 0:
			m.Drain("orders", false)
		case m.topic.State() == order.Draining:
			m.hold()
		case m.topic.State() == order.Handing && len(m.table) > 0:
			m.sendOldest()
		case m.topic.State() == order.Handing:
			_, _ = m.HandBack(context.Background(), "orders") // all that is held is taken now
		}
		m.check(t)
	}
	if len(m.kafka)+m.dead != int(m.next) || len(m.Closed()) > 0 {
		t.Fatalf("not healed: %d of %d, closed %v", len(m.kafka), m.next, m.Closed())
	}
}
