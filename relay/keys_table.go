package relay

import (
	"context"
	"fmt"
	"time"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// This file is how Keys follows the table.

const (
	// slotsEvery is how often the table is asked for parked rows that nobody knows of, as a late UPDATE of an earlier session
	// may leave them.
	slotsEvery = 2 * time.Minute
	// refreshShare bounds the time that reading the dead letters takes: there may be very many.
	refreshShare = 10
)

// load reads which keys wait, before the first message is sent.
func (k *Keys) load(ctx context.Context) error {
	if err := k.Refresh(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	letters := 0
	for _, l := range k.letters {
		if l.slot != 0 {
			letters++
		}
	}
	waiting := len(k.waiting)
	k.mu.Unlock()
	if waiting > 0 {
		k.log.Info().Int("dead", letters).Int("keys", waiting).Msg("keys wait behind dead letters, or for what is parked")
	}
	return nil
}

// Refresh follows what persons have done to dead letters: one that was retried is parked, to go first, and its key may go on;
// a new one holds its key. It is called before each pass, by the goroutine that makes the passes.
func (k *Keys) Refresh(ctx context.Context) error {
	began := time.Now()
	if !k.stale.Swap(false) && began.Before(k.refreshAfter) {
		return nil
	}
	if err := k.refresh(ctx); err != nil {
		k.stale.Store(true)
		return err
	}
	k.refreshAfter = time.Now().Add(refreshShare * time.Since(began))
	return nil
}

func (k *Keys) refresh(ctx context.Context) error {
	if k.slotsRead.IsZero() || time.Since(k.slotsRead) > slotsEvery {
		slots, err := k.rows.ParkedSlots(ctx)
		if err != nil {
			return fmt.Errorf("look for parked rows: %w", err)
		}
		k.mu.Lock()
		for _, slot := range slots {
			if k.waiting[slot] == nil {
				k.key(slot).ready = true
			}
		}
		k.mu.Unlock()
		k.slotsRead = time.Now()
	}
	if !k.hold {
		return nil
	}
	k.mu.Lock()
	k.round++
	k.mu.Unlock()
	dead, err := k.rows.DeadLetters(ctx)
	if err != nil {
		return fmt.Errorf("look for dead letters: %w", err)
	}
	unknown, gone := k.compare(dead)
	for table, ids := range unknown {
		err := k.rows.ReadDead(ctx, table, ids, func(row *outbox.Row) {
			k.died(row.Ref(), row.Topic, k.slotOf(row, k.keyOf(row)))
			k.buried(row.Ref())
		})
		if err != nil {
			return fmt.Errorf("read dead letters: %w", err)
		}
	}
	return k.decided(ctx, gone)
}

// compare returns what is dead and was not known, and what is known and not dead any more: of that only what the table had
// been told before it was asked.
func (k *Keys) compare(dead map[outbox.Table][]uint64) (unknown map[outbox.Table][]uint64, gone []outbox.Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	unknown = map[outbox.Table][]uint64{}
	still := make(map[letterID]bool, len(k.letters))
	for table, ids := range dead {
		for _, id := range ids {
			if id := (letterID{table, id}); k.letters[id] != nil {
				still[id] = true
			} else {
				unknown[table] = append(unknown[table], id.id)
			}
		}
	}
	for id, l := range k.letters {
		if _, asked := dead[id.table]; asked && !still[id] && l.written != 0 && l.written <= k.round {
			gone = append(gone, l.ref)
		}
	}
	return unknown, gone
}

// decided deals with dead letters about which a person has decided.
func (k *Keys) decided(ctx context.Context, refs []outbox.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	found, err := k.rows.Lookup(ctx, refs)
	if err != nil {
		return fmt.Errorf("look up retried dead letters: %w", err)
	}
	var again []store.Parking
	for _, ref := range refs {
		status := found[ref].Status
		if _, ok := found[ref]; ok && (status == outbox.Pending || status == outbox.Failed) {
			if slot := k.slotOfLetter(ref); slot != 0 {
				again = append(again, store.Parking{Ref: ref, Slot: slot})
			}
		}
	}
	// Parked before it is forgotten, so that no row of its key is taken for the first.
	if err := k.rows.Park(ctx, again); err != nil {
		return fmt.Errorf("park retried dead letters: %w", err)
	}
	retried := make(map[outbox.Ref]bool, len(again))
	for _, p := range again {
		retried[p.Ref] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, ref := range refs {
		id := letterID{ref.Table, ref.ID}
		l := k.letters[id]
		if row, ok := found[ref]; l == nil || ok && row.Status == outbox.Dead {
			continue
		}
		var was *outbox.Ref
		if retried[ref] {
			was = &ref
		}
		k.remove(id, l, was)
	}
	return nil
}

func (k *Keys) slotOfLetter(ref outbox.Ref) store.Slot {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.letters[letterID{ref.Table, ref.ID}]; l != nil {
		return l.slot
	}
	return 0
}
