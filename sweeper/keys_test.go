package sweeper_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
)

// keys are the lines of keys, with a journal: rows of the keys in waiting wait in line 1, behind the ids in dead.
type keys struct {
	waiting []string
	dead    []uint64
	alone   []uint64
	after   bool // a dead letter holds its key
	ready   map[uint64]bool
	holds   bool // whether the stream can hold
	journal []string
	spent   int
}

func (k *keys) note(format string, args ...any) {
	k.journal = append(k.journal, fmt.Sprintf(format, args...))
}

func (k *keys) Refresh(context.Context) error { return nil }

func (k *keys) Waits(row *outbox.Row) (order.Name, bool) {
	return order.Name{Topic: row.Topic, Key: 1}, slices.Contains(k.waiting, string(row.Key))
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

func (k *keys) release() (names []order.Name) {
	for _, key := range slices.Sorted(maps.Keys(k.ready)) {
		names = append(names, order.Name{Key: key})
	}
	return names
}

func (k *keys) report(name order.Name, o order.Outcome) {
	if o.Kind == order.GivesUp {
		k.note("unhold")
		return
	}
	k.note("looked at %s blocked %t", name.Topic, o.Kind == order.Blocked)
}

func (k *keys) TurnOf(_ order.Name, ref outbox.Ref) order.Turn {
	switch {
	case slices.ContainsFunc(k.dead, func(id uint64) bool { return id < ref.ID }):
		return order.Behind
	case slices.Contains(k.alone, ref.ID):
		return order.GoesAlone
	}
	return order.Goes
}

func (k *keys) hold() bool {
	k.note("hold %t", k.holds)
	return k.holds
}

func (k *keys) handBack() bool {
	k.note("hand back")
	k.waiting = nil
	return true
}
