package relay

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Gate keeps the order of each topic through its failures (DESIGN 4a). The first message to a topic goes alone, as a
// probe; once it is acked the topic is open and fully pipelined. A topic that refuses its probe is closed: it becomes
// the sweeper's, and the stream defers its messages to the table. When the sweeper has sent all of them it hands the
// topic back: for that last stretch the stream holds the topic's new messages in memory, so that no newer row of a key
// can pass an older one.
//
// A topic here is what the row's topic column names. Routes map it to a Kafka topic by its name alone, so it stands for
// one Kafka topic.
//
// All methods may be called concurrently. No method does I/O under the lock.
type Gate struct {
	sink gateSink
	wake func() // tells the sweeper that there is something to do about a topic; set before anything flows
	log  zerolog.Logger
	// relaxed lets what is new pass what waits in the table: a topic that takes messages again is open at once, and what was
	// deferred goes with the next sweeps, in no order with it.
	relaxed bool

	mu     sync.Mutex
	topics map[string]*topic
}

// gateSink is where the gate lets messages go.
type gateSink interface {
	// send hands a message to the producer. After an error nothing that comes behind it may be sent.
	send(ctx context.Context, it *item) error
	// probe sends the topic's lone first message and tells the gate how it went.
	probe(ctx context.Context, it *item)
	deferred(it *item)
	// stillPending drops the items that the sweeper sent meanwhile and settles those. After an error nothing is known.
	stillPending(ctx context.Context, items []*item) ([]*item, error)
}

type gateState uint8

const (
	fresh    gateState = iota // nothing was sent since the start
	probing                   // a lone message is on its way; later ones are held
	open                      // pipelined
	closed                    // refused; the sweeper probes it, the stream defers
	draining                  // the sweeper sends what was deferred, the stream still defers
	handing                   // the sweeper sends the last of it, the stream holds
	flushing                  // what was held is being sent, in order
)

func (s gateState) String() string {
	return [...]string{"fresh", "probing", "open", "closed", "draining", "handing", "flushing"}[s]
}

type topic struct {
	name       string
	state      gateState
	reason     string
	held       []*item
	deferring  int           // deferring UPDATEs on their way
	failing    int           // failed probes whose UPDATE is on its way
	deferred   chan struct{} // closed when deferring falls to 0; nil when nobody waits
	reachable  bool          // while probing: the brokers answered for this topic
	acked      bool          // a message was acked since the topic was last closed
	late       bool          // the stream's probe is still out although the topic was closed meanwhile
	unrecorded bool          // rows from before the start may not be deferred yet
	notBefore  time.Time     // no handing back before: claims of a dead process may be out until then
	probeAt    time.Time     // closed: when the sweeper may probe again
	holds      int           // numbers the holds: the time of one must not end a later one
	flushes    int           // numbers the flushes: a topic may be closed and opened again during a slow one
	maxBytes   int           // the topic's own limit on a message, 0 when not known
	violated   map[string]string
}

// admission is what the pump does with a message.
type admission uint8

const (
	admitSend  admission = iota // hand it to the producer now
	admitProbe                  // it is the topic's probe
	admitTaken                  // the gate holds it or has deferred it
)

// NewGate returns a gate that knows no topic yet. What it holds is bounded by the in-flight window, in which every message
// has its place before it is admitted.
func NewGate(sink gateSink, log zerolog.Logger) *Gate {
	return &Gate{sink: sink, wake: func() {}, log: log, topics: make(map[string]*topic)}
}

// Rebuild starts the named topics as closed, because the table has rows of theirs that must go before anything newer. Of
// the claimed ones a dead process may hold rows until claimedUntil; those can't be told from others before, so nothing of
// the topic is sent till then. The topics are not probed before Recorded. It is called before the first message.
func (g *Gate) Rebuild(names, claimed []string, claimedUntil time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		t := g.topic(name)
		t.state = closed
		t.reason = "rows left in the table"
		t.unrecorded = true
		if slices.Contains(claimed, name) {
			t.notBefore, t.probeAt = claimedUntil, claimedUntil
		}
	}
}

// Recorded tells that every row which was in the table before the start is deferred, so that a drain finds it.
func (g *Gate) Recorded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.topics {
		t.unrecorded = false
	}
}

// stateOf returns a topic's state without making an entry for it.
func (g *Gate) stateOf(name string) gateState {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.topics[name]; t != nil {
		return t.state
	}
	return fresh
}

// names returns the topics that are of a kind.
func (g *Gate) names(of func(name string) bool) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for name := range g.topics {
		if of(name) {
			names = append(names, name)
		}
	}
	return names
}

// lookup returns the topic's entry, made if needed.
func (g *Gate) lookup(name string) *topic {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.topic(name)
}

// topic returns the entry of a name. The caller holds mu.
func (g *Gate) topic(name string) *topic {
	t := g.topics[name]
	if t == nil {
		t = &topic{name: name}
		g.topics[name] = t
	}
	return t
}

// admit decides about the next message of the stream. It is called in commit order.
func (g *Gate) admit(it *item) admission {
	g.mu.Lock()
	t := it.topic
	var spilled []*item
	result := admitTaken
	switch t.state {
	case open:
		result = admitSend
	case fresh:
		t.state = probing
		t.reachable = false
		result = admitProbe
	case probing, handing, flushing:
		t.held = append(t.held, it)
	case closed, draining:
		spilled = []*item{it}
	}
	t.deferring += len(spilled)
	g.mu.Unlock()
	g.deferAll(spilled)
	return result
}

// holdAtMost is how long a topic's messages are held while its probe is on its way, or while it is being handed back. A
// probe takes milliseconds, but the held messages fill the window in which other topics need places too.
const holdAtMost = time.Second

// probeIsSlow tells that the probe of a topic, which the brokers know, takes longer than messages are held for. The topic is
// closed meanwhile.
func (g *Gate) probeIsSlow(t *topic) {
	g.mu.Lock()
	var held []*item
	if t.state == probing && t.reachable {
		held = g.giveUpHolding(t)
	}
	g.mu.Unlock()
	if len(held) > 0 {
		g.log.Warn().Str("topic", t.name).Int("held", len(held)).Msg("probe takes long, the topic's messages wait in the table")
	}
	g.deferAll(held)
}

// giveUpHolding turns a topic that takes too long into one that defers. The caller holds mu and defers what is returned.
func (g *Gate) giveUpHolding(t *topic) []*item {
	if t.state == probing {
		t.state = closed
		t.reason = "probe takes long"
		t.late = true
		t.probeAt = time.Time{}
	} else {
		t.state = draining
		t.wakeHold()
	}
	held := t.held
	t.held = nil
	t.deferring += len(held)
	return held
}

// wakeHold ends a wait in Hold. The caller holds mu.
func (t *topic) wakeHold() {
	if t.deferred != nil {
		close(t.deferred)
		t.deferred = nil
	}
}

func (g *Gate) deferAll(items []*item) {
	for _, it := range items {
		g.sink.deferred(it)
	}
}

// deferSettled tells that a deferring UPDATE of the topic is done.
func (g *Gate) deferSettled(t *topic) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.deferring--
	if t.deferring == 0 {
		t.wakeHold()
	}
}

// sawReachable tells that the brokers answered for a topic whose probe is on its way, and the topic's size limit.
func (g *Gate) sawReachable(t *topic, reachable bool, maxBytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.reachable = reachable
	if maxBytes > 0 {
		t.maxBytes = maxBytes
	}
}

// setLimit notes the topic's own limit on a message in bytes.
func (g *Gate) setLimit(t *topic, maxBytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.maxBytes = maxBytes
}

// limit returns the topic's own limit on a message in bytes, 0 when it is not known.
func (g *Gate) limit(t *topic) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return t.maxBytes
}

// probeAcked opens the topic after its probe: what was held meanwhile goes first, in order. The error is flush's.
func (g *Gate) probeAcked(ctx context.Context, t *topic) error {
	g.mu.Lock()
	t.acked = true
	if t.late {
		t.late = false
		g.beginDrain(t)
		g.mu.Unlock()
		g.wake()
		return nil
	}
	t.state = flushing
	g.mu.Unlock()
	_, err := g.flush(ctx, t)
	return err
}

// nextProbe returns the held message that is to be the probe after the one before was given up for good; the topic is
// fresh again when nothing is held.
func (g *Gate) nextProbe(t *topic) *item {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.late {
		t.late = false
		return nil
	}
	if len(t.held) == 0 {
		t.state = fresh
		return nil
	}
	it := t.held[0]
	t.held = t.held[1:]
	return it
}

// failSettled tells that the UPDATE of a failed message of the topic is done.
func (g *Gate) failSettled(t *topic) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.failing--
}

// willFail tells that a message of the topic is about to become failed. The sweeper does not look for a row to probe
// with until that is written: it would take a later one.
func (g *Gate) willFail(t *topic) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.failing++
}

// deferItem defers one message that is not in the gate any more: it was about to be sent, or was refused together with others.
func (g *Gate) deferItem(t *topic, it *item) {
	g.mu.Lock()
	t.deferring++
	g.mu.Unlock()
	g.sink.deferred(it)
}

// refusedOpen remembers that a message of an open topic was refused, so that a later ack of the same key can
// tell which message it has passed.
func (g *Gate) refusedOpen(t *topic, key []byte, msgID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.relaxed {
		return
	}
	if t.violated == nil {
		t.violated = make(map[string]string)
	}
	if _, known := t.violated[string(key)]; !known && len(t.violated) < maxViolated {
		t.violated[string(key)] = msgID
	}
}

// passed returns the msg_id of the refused message that an acked one of the same key has passed, "" when there is none.
func (g *Gate) passed(t *topic, key []byte) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.violated == nil {
		return ""
	}
	return t.violated[string(key)]
}

// maxViolated bounds the keys remembered per topic; a batch that is refused has seldom more.
const maxViolated = 1000
