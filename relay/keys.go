package relay

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Keys knows the keys that wait behind a dead letter (router.after_dead: hold). While a key is here, the stream parks its
// messages and the sweeper parks its rows: they wait in the table, out of every query's sight, at a time that tells their
// key (store.Slot). When a person has decided about the dead letter, the sweeper sends what is parked by id, and at last,
// while the stream holds the key's new messages in memory, the rest: then the key is forgotten.
//
// What is here is never more than what the table says: dead letters are status 4, waiting keys have rows parked. Load reads
// both before the first message is sent, so a restart forgets nothing.
//
// All methods may be called concurrently. No method does I/O under the lock.
type Keys struct {
	hold  bool // otherwise dead letters hold nothing, and only what an earlier process has parked is here
	rows  keyRows
	keyOf func(*outbox.Row) []byte
	sink  keySink
	log   zerolog.Logger

	size  atomic.Int64 // of waiting, to be asked without the lock
	stale atomic.Bool  // a message may have become dead by spending its retries

	// What follows belongs to the goroutine that makes the passes.
	refreshAfter time.Time
	slotsRead    time.Time

	mu      sync.Mutex
	letters map[letterID]*letter
	waiting map[store.Slot]*waitingKey
	round   uint64 // of reading the dead letters
}

// keyRows is what Keys asks of the tables.
type keyRows interface {
	DeadLetters(ctx context.Context) (map[outbox.Table][]uint64, error)
	ReadDead(ctx context.Context, table outbox.Table, ids []uint64, visit func(*outbox.Row)) error
	ParkedSlots(ctx context.Context) ([]store.Slot, error)
	Lookup(ctx context.Context, refs []outbox.Ref) (map[outbox.Ref]store.Found, error)
	Park(ctx context.Context, rows []store.Parking) error
}

// keySink is where messages of waiting keys go.
type keySink interface {
	// parked leaves a message in the table.
	parked(it *item)
	// admit gives a message to the gate. After an error nothing that comes behind it may be admitted.
	admit(ctx context.Context, it *item) error
	stillPending(ctx context.Context, items []*item) ([]*item, error)
	// stateOf returns the state of a topic's gate.
	stateOf(topic string) gateState
}

type letterID struct {
	table outbox.Table
	id    uint64
}

// letter is a dead letter. One whose row has no key but its msg_id has slot 0: nothing waits behind it.
type letter struct {
	ref     outbox.Ref
	slot    store.Slot
	topic   string
	written uint64 // the round in which the table was told, 0 when it was not yet
}

// waitingKey is a key that waits: behind dead letters, or behind what is still parked.
type waitingKey struct {
	topic   string // "" when not known yet
	letters map[letterID]bool
	retried map[outbox.Ref]bool // were dead letters: each goes alone, so that nothing follows one that dies again
	ready   bool                // something of it may be sendable
	parking int                 // parking UPDATEs on their way
	settled chan struct{}       // closed when parking falls to 0; nil when nobody waits
	handing bool                // the stream holds
	holds   int                 // numbers the holds: the time of one must not end a later one
	held    []*item
}

func newKeys(hold bool, rows keyRows, keyOf func(*outbox.Row) []byte, sink keySink, log zerolog.Logger) *Keys {
	return &Keys{
		hold: hold, rows: rows, keyOf: keyOf, sink: sink, log: log,
		letters: make(map[letterID]*letter), waiting: make(map[store.Slot]*waitingKey),
	}
}

// slotOf returns the slot of a row's key, 0 when nothing can wait behind it.
func (k *Keys) slotOf(row *outbox.Row, key []byte) store.Slot {
	if !k.hold && k.size.Load() == 0 || string(key) == row.MsgID {
		return 0
	}
	return store.SlotOf(row.Topic, key)
}

// take keeps a message whose key waits, and reports whether it did: it is parked, or held while its key is handed back.
func (k *Keys) take(it *item) bool {
	if it.slot == 0 || k.size.Load() == 0 {
		return false
	}
	k.mu.Lock()
	key := k.waiting[it.slot]
	switch {
	case key == nil:
		k.mu.Unlock()
		return false
	case key.handing:
		key.held = append(key.held, it)
		k.mu.Unlock()
		return true
	}
	key.parking++
	// One with a lower id than the dead letters has committed later, or is read again. It may go by id.
	key.ready = key.ready || !key.behind(it.ref)
	k.mu.Unlock()
	k.sink.parked(it)
	return true
}

// parkSettled tells that a parking UPDATE is done.
func (k *Keys) parkSettled(slot store.Slot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.waiting[slot]
	if key == nil {
		return
	}
	if key.parking--; key.parking == 0 {
		key.wake()
	}
}

func (key *waitingKey) wake() {
	if key.settled != nil {
		close(key.settled)
		key.settled = nil
	}
}

// behind reports whether a row waits behind one of the dead letters: in its table those with a lower id, and any of another
// table, with whose ids its own can't be compared.
func (key *waitingKey) behind(ref outbox.Ref) bool {
	for id := range key.letters {
		if id.table != ref.Table || id.id < ref.ID {
			return true
		}
	}
	return false
}

// key returns the entry of a slot. The caller holds mu.
func (k *Keys) key(slot store.Slot) *waitingKey {
	key := k.waiting[slot]
	if key == nil {
		key = &waitingKey{letters: make(map[letterID]bool)}
		k.waiting[slot] = key
		k.size.Store(int64(len(k.waiting)))
	}
	return key
}

// died tells that a message is a dead letter, before the table is told: from now on its key waits.
func (k *Keys) died(ref outbox.Ref, topic string, slot store.Slot) {
	if !k.hold {
		return
	}
	id := letterID{ref.Table, ref.ID}
	k.mu.Lock()
	if old := k.letters[id]; old != nil && old.slot != slot {
		k.remove(id, old, nil) // its id or its key is another one's now
	}
	k.letters[id] = &letter{ref: ref, slot: slot, topic: topic}
	var held []*item
	if slot != 0 {
		key := k.key(slot)
		key.topic = topic
		key.letters[id] = true
		held = key.giveUpHolding()
	}
	k.mu.Unlock()
	k.parkAll(held)
}

// buried tells that the table says so, too.
func (k *Keys) buried(ref outbox.Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.letters[letterID{ref.Table, ref.ID}]; l != nil && l.ref == ref {
		l.written = k.round + 1
	}
}

// forget takes back died: the table could not be told.
func (k *Keys) forget(ref outbox.Ref) {
	id := letterID{ref.Table, ref.ID}
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.letters[id]; l != nil && l.written == 0 {
		k.remove(id, l, nil)
	}
}

// remove forgets a dead letter. The caller holds mu.
func (k *Keys) remove(id letterID, l *letter, retried *outbox.Ref) {
	delete(k.letters, id)
	key := k.waiting[l.slot]
	if key == nil {
		return
	}
	delete(key.letters, id)
	key.ready = true
	if retried != nil {
		if key.retried == nil {
			key.retried = make(map[outbox.Ref]bool)
		}
		key.retried[*retried] = true
	}
}

// giveUpHolding ends a hand-back; the caller holds mu and parks what is returned.
func (key *waitingKey) giveUpHolding() []*item {
	held := key.held
	key.held, key.handing, key.ready = nil, false, true
	key.parking += len(held)
	key.wake()
	return held
}

func (k *Keys) parkAll(items []*item) {
	for _, it := range items {
		k.sink.parked(it)
	}
}

// overtook returns the msg_id of a dead letter that a message which was just acked has passed: both were on their way when
// it died. "" when there is none.
func (k *Keys) overtook(it *item) string {
	if it.slot == 0 || k.size.Load() == 0 {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.waiting[it.slot]
	if key == nil {
		return ""
	}
	for id := range key.letters {
		if id.table == it.ref.Table && id.id < it.ref.ID {
			return k.letters[id].ref.MsgID
		}
	}
	return ""
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

// status returns some of the dead letters that hold keys, the oldest first, and how many there are.
func (k *Keys) status() (some []HeldKey, total int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, l := range k.letters {
		if l.slot != 0 {
			some = append(some, HeldKey{Topic: l.topic, Table: id.table.String(), ID: id.id, MsgID: l.ref.MsgID})
		}
	}
	slices.SortFunc(some, func(a, b HeldKey) int {
		if a.Table != b.Table {
			return cmp.Compare(a.Table, b.Table)
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return some[:min(len(some), heldShown)], len(some)
}
