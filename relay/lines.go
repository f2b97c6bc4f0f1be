package relay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Lines are the lines in which messages wait: for their topic, while it takes none, and for their key, behind a dead
// letter (DESIGN 4a). What happens to a line is order's to decide. Here is what that has no part in: the lock, the
// clock, and carrying out what is decided.
//
// A topic here is what the row's topic column names. Routes map it to a Kafka topic by its name alone, so it stands
// for one Kafka topic.
//
// All methods may be called concurrently. Nothing is done, logged or called under the lock. What is held is bounded
// by the in-flight window, in which every message has its place before it is admitted.
type Lines struct {
	sink   sink
	notify func() // the sweeper has something to do
	log    zerolog.Logger
	hold   bool // keys wait behind their dead letters

	size  atomic.Int64 // keys that wait, to be asked without the lock
	spent atomic.Bool  // a message may have become dead by spending its retries

	mu    sync.Mutex
	lines *order.Lines[*item]
	// waits are the holds that wait until nothing of their line is on its way into the table.
	waits map[*line]chan struct{}
}

// line is a line of the stream's messages. It is read and changed under the lock of Lines only.
type line = order.Line[*item]

// sink is where lines let messages go.
type sink interface {
	// onward brings a message the way that a line has chosen. After an error nothing that comes behind it may be sent.
	onward(ctx context.Context, it *item, way order.Way) error
	// leave is onward for a message that goes to the table.
	leave(it *item, way order.Way)
	// stillPending drops the items that the sweeper sent meanwhile and settles those. After an error nothing is known.
	stillPending(ctx context.Context, items []*item) ([]*item, error)
}

// newLines returns lines of which none is known yet.
func newLines(cfg order.Config, sink sink, notify func(), log zerolog.Logger) *Lines {
	return &Lines{
		sink: sink, notify: notify, log: log, hold: cfg.Hold,
		lines: order.NewLines[*item](cfg), waits: make(map[*line]chan struct{}),
	}
}

// event brings an event to a line and carries out what follows from it, but for probes and flushes.
func (g *Lines) event(l *line, event func() order.Actions[*item]) order.Actions[*item] {
	g.mu.Lock()
	do := event()
	g.settle(l)
	g.mu.Unlock()
	g.carryOut(l, do)
	return do
}

// settle ends the wait of a hold that has come to its end. The caller holds mu.
func (g *Lines) settle(l *line) {
	g.size.Store(int64(g.lines.Keys()))
	if wait := g.waits[l]; wait != nil && (l.Away() == 0 || l.State() != order.Handing) {
		close(wait)
		delete(g.waits, l)
	}
}

func (g *Lines) carryOut(l *line, do order.Actions[*item]) {
	for _, it := range do.Defer {
		g.sink.leave(it, l.ToTable())
	}
	if do.Closed {
		g.log.Warn().Str("topic", l.Name().Topic).Str("reason", do.Reason).Msg("topic closed, its messages wait in the table")
	}
	if do.Notify {
		g.notify()
	}
}

// topic returns a topic's line, made if needed.
func (g *Lines) topic(name string) *line {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lines.Topic(name)
}

// topics returns the topics that are of a kind.
func (g *Lines) topics(of func(name string) bool) []string {
	g.mu.Lock()
	all := g.lines.Topics()
	g.mu.Unlock()
	var names []string
	for _, name := range all {
		if of(name) {
			names = append(names, name)
		}
	}
	return names
}

// slotOf returns the slot of a row's key, 0 when nothing can wait behind it.
func (g *Lines) slotOf(row *outbox.Row, key []byte) store.Slot {
	if !g.hold && g.size.Load() == 0 || string(key) == row.MsgID {
		return 0
	}
	return store.SlotOf(row.Topic, key)
}

// admit decides about the next message of the stream. It is called in commit order.
func (g *Lines) admit(it *item) order.Way {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lines.Admit(it, it.topic)
}

// atKey lets a message wait in the line of its key, and reports whether that waits. It is asked again for a message
// that its topic's line has held: its key may have begun to wait meanwhile.
func (g *Lines) atKey(it *item) (way order.Way, waits bool) {
	if it.slot == 0 || g.size.Load() == 0 {
		return order.Send, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lines.AtKey(it)
}

// Rebuild starts the named topics as closed, because the table has rows of theirs that must go before anything newer.
// Of the claimed ones a dead process may hold rows until claimedUntil; those can't be told from others before, so
// nothing of the topic is sent till then. The topics are not probed before Recorded. It is called before the first
// message.
func (g *Lines) Rebuild(names, claimed []string, claimedUntil time.Time) {
	until := make(map[string]time.Time, len(claimed))
	for _, name := range claimed {
		until[name] = claimedUntil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		g.lines.Topic(name).Rebuild(until[name])
	}
}

// Recorded reports that every row which was in the table before the start is deferred, so that a drain finds it.
func (g *Lines) Recorded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines.Recorded()
}

// status returns the topics that are not open.
func (g *Lines) status() []TopicStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []TopicStatus
	for _, l := range g.lines.Waiting() {
		list = append(list, TopicStatus{
			Name: l.Name().Topic, State: l.State().String(), Reason: l.Reason(), Held: len(l.Holding()),
		})
	}
	return list
}

// HeldKey is a dead letter behind which a key waits.
type HeldKey struct {
	Topic string `json:"topic"`
	Table string `json:"table"`
	ID    uint64 `json:"id"`
	MsgID string `json:"msg_id"`
}

// heldShown is how many of them a status shows.
const heldShown = 20

// heldKeys returns some of the dead letters that hold keys, the oldest first, and how many there are.
func (g *Lines) heldKeys() (some []HeldKey, total int) {
	g.mu.Lock()
	letters := g.lines.Letters()
	g.mu.Unlock()
	for _, l := range letters[:min(len(letters), heldShown)] {
		some = append(some, HeldKey{Topic: l.Line.Topic, Table: l.Ref.Table.String(), ID: l.Ref.ID, MsgID: l.Ref.MsgID})
	}
	return some, len(letters)
}
