package relay

import (
	"context"
	"time"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// This file is Keys as the sweeper sees it (sweeper.Keys).

// Waits returns the slot of a due row whose key waits, 0 when it does not.
func (k *Keys) Waits(row *outbox.Row) store.Slot {
	if k.size.Load() == 0 {
		return 0
	}
	slot := k.slotOf(row, k.keyOf(row))
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.waiting[slot]
	if slot == 0 || key == nil {
		return 0
	}
	key.topic = row.Topic
	key.ready = key.ready || !key.behind(row.Ref())
	return slot
}

// Died tells that the sweeper makes a row a dead letter.
func (k *Keys) Died(row *outbox.Row) {
	if k.hold {
		k.died(row.Ref(), row.Topic, k.slotOf(row, k.keyOf(row)))
	}
}

// Buried tells whether the table could be told of a dead letter.
func (k *Keys) Buried(ref outbox.Ref, written bool) {
	if written {
		k.buried(ref)
	} else {
		k.forget(ref)
	}
}

// Spent tells that messages may have become dead by spending their retries.
func (k *Keys) Spent() { k.stale.Store(true) }

// Ready returns the slots of which something may be sendable. The caller says by Again what came of each.
func (k *Keys) Ready() []store.Slot { return k.ready(true) }

// Pending reports whether Ready would return any.
func (k *Keys) Pending() bool { return len(k.ready(false)) > 0 }

func (k *Keys) ready(take bool) []store.Slot {
	if k.size.Load() == 0 {
		return nil
	}
	k.mu.Lock()
	topics := make(map[store.Slot]string)
	for slot, key := range k.waiting {
		if key.ready {
			topics[slot] = key.topic
		}
	}
	k.mu.Unlock()
	var ready []store.Slot
	for slot, topic := range topics {
		if topic == "" || k.canSend(topic) {
			ready = append(ready, slot)
		}
	}
	if take {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, slot := range ready {
			k.waiting[slot].ready = false // before the table is read: what comes meanwhile is not overlooked
		}
	}
	return ready
}

// canSend reports whether a topic takes messages, or nobody has tried yet.
func (k *Keys) canSend(topic string) bool {
	state := k.sink.stateOf(topic)
	return state == open || state == fresh
}

// Again ends what Ready has begun. blocked tells that nothing parked of the slot could be sent, because of dead letters.
func (k *Keys) Again(slot store.Slot, topic string, blocked bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.waiting[slot]
	if key == nil {
		return
	}
	if topic != "" {
		key.topic = topic
	}
	if !blocked || len(key.letters) == 0 {
		key.ready = true
	}
}

// May reports whether a parked row may be sent: no dead letter is before it.
func (k *Keys) May(slot store.Slot, ref outbox.Ref) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.waiting[slot]
	return key == nil || !key.behind(ref)
}

// Alone reports whether a row was a dead letter, after which nothing goes before it is acked.
func (k *Keys) Alone(slot store.Slot, ref outbox.Ref) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.waiting[slot]
	return key != nil && key.retried[ref]
}

// Hold begins to hand a key back: the stream holds its new messages. It returns true once no parking UPDATE is on its way.
// Holding ends by itself when it takes long.
func (k *Keys) Hold(ctx context.Context, slot store.Slot) bool {
	k.mu.Lock()
	key := k.waiting[slot]
	if key == nil || len(key.letters) > 0 || key.handing {
		k.mu.Unlock()
		return false
	}
	key.handing = true
	key.holds++
	mine := key.holds
	time.AfterFunc(holdAtMost, func() { k.unhold(slot, mine) })
	for key.parking > 0 && key.handing {
		if key.settled == nil {
			key.settled = make(chan struct{})
		}
		wait := key.settled
		k.mu.Unlock()
		select {
		case <-ctx.Done():
			k.unhold(slot, mine)
			return false
		case <-wait:
		}
		k.mu.Lock()
	}
	defer k.mu.Unlock()
	return key.handing
}

// Unhold gives up handing back: what was held is parked.
func (k *Keys) Unhold(slot store.Slot) {
	k.mu.Lock()
	hold := 0
	if key := k.waiting[slot]; key != nil {
		hold = key.holds
	}
	k.mu.Unlock()
	k.unhold(slot, hold)
}

func (k *Keys) unhold(slot store.Slot, hold int) {
	k.mu.Lock()
	var held []*item
	if key := k.waiting[slot]; key != nil && key.handing && key.holds == hold {
		held = key.giveUpHolding()
	}
	k.mu.Unlock()
	k.parkAll(held)
}

// HandBack ends a hold after which nothing is parked any more: what was held goes on, and then the key waits no
// longer. It reports false when the stream had to give up holding meanwhile. An error means that the session is
// ending; the key goes on holding then.
func (k *Keys) HandBack(ctx context.Context, slot store.Slot) (bool, error) {
	for {
		k.mu.Lock()
		key := k.waiting[slot]
		if key == nil || !key.handing {
			k.mu.Unlock()
			return false, nil
		}
		held := key.held
		key.held = nil
		if len(held) == 0 {
			// Nothing is parked, held, or on its way to either.
			delete(k.waiting, slot)
			k.size.Store(int64(len(k.waiting)))
			k.mu.Unlock()
			return true, nil
		}
		if !k.allOpen(held) {
			// Held by the gate they would come back here, behind younger ones.
			key.held = held
			held = key.giveUpHolding()
			k.mu.Unlock()
			k.parkAll(held)
			return false, nil
		}
		k.mu.Unlock()
		// A message that is admitted while this batch is on its way is held behind it.
		left, err := k.sink.stillPending(ctx, held)
		if err != nil {
			return false, err
		}
		for _, it := range left {
			if err := k.sink.admit(ctx, it); err != nil {
				return false, err
			}
		}
	}
}

// allOpen reports whether the topics of all items are open. The gate's lock is taken under that of Keys, never the other
// way round.
func (k *Keys) allOpen(items []*item) bool {
	for _, it := range items {
		if k.sink.stateOf(it.topic.name) != open {
			return false
		}
	}
	return true
}
