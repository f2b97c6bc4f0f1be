package sweeper_test

import (
	"context"
	"fmt"
	"slices"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// keys is relay.Keys for one slot, with a journal: rows of the keys in waiting wait in slot 1, behind the ids in dead.
type keys struct {
	waiting []string
	dead    []uint64
	alone   []uint64
	after   bool // a dead letter holds its key
	ready   bool
	more    []store.Slot // others that are ready too
	holds   bool         // whether the stream can hold
	journal []string
	spent   int
}

func (k *keys) note(format string, args ...any) {
	k.journal = append(k.journal, fmt.Sprintf(format, args...))
}

func (k *keys) Refresh(context.Context) error { return nil }

func (k *keys) Waits(row *outbox.Row) store.Slot {
	if slices.Contains(k.waiting, string(row.Key)) {
		return 1
	}
	return 0
}

func (k *keys) Died(row *outbox.Row) {
	k.note("died %s", row.MsgID)
	if !k.after {
		return
	}
	k.dead = append(k.dead, row.ID)
	k.waiting = append(k.waiting, string(row.Key))
}

func (k *keys) Buried(ref outbox.Ref, written bool) { k.note("buried %s %t", ref.MsgID, written) }

func (k *keys) Spent() { k.spent++ }

func (k *keys) Ready() []store.Slot {
	if !k.ready {
		return nil
	}
	k.ready = false
	return append([]store.Slot{1}, k.more...)
}

func (k *keys) Pending() bool { return k.ready }

func (k *keys) Again(_ store.Slot, topic string, blocked bool) {
	k.note("again %s blocked %t", topic, blocked)
}

func (k *keys) May(_ store.Slot, ref outbox.Ref) bool {
	return !slices.ContainsFunc(k.dead, func(id uint64) bool { return id < ref.ID })
}

func (k *keys) Alone(_ store.Slot, ref outbox.Ref) bool { return slices.Contains(k.alone, ref.ID) }

func (k *keys) Hold(context.Context, store.Slot) bool {
	k.note("hold %t", k.holds)
	return k.holds
}

func (k *keys) Unhold(store.Slot) { k.note("unhold") }

func (k *keys) HandBack(context.Context, store.Slot) (bool, error) {
	k.note("hand back")
	k.waiting = nil
	return true, nil
}
