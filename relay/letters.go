package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// letters follows the table's dead letters, behind which keys wait (router.after_dead: hold). While a key waits, the
// stream parks its messages and the sweeper parks its rows: they wait in the table, out of every query's sight, at a
// time that tells their key (store.Slot). When a person has decided about the dead letter, the sweeper sends what is
// parked by id, and at last, while the stream holds the key's new messages in memory, the rest.
//
// What is known of letters is never more than what the table says: dead letters are status 4, waiting keys have rows
// parked. load reads both before the first message is sent, so a restart forgets nothing.
//
// load and Refresh are for the goroutine that makes the passes; all else may be called concurrently.
type letters struct {
	*Lines
	rows  Letters
	keyOf func(*outbox.Row) []byte
	log   zerolog.Logger

	refreshAfter time.Time
	slotsRead    time.Time
}

func newLetters(lines *Lines, rows Letters, keyOf func(*outbox.Row) []byte, log zerolog.Logger) *letters {
	return &letters{Lines: lines, rows: rows, keyOf: keyOf, log: log}
}

// lineOf returns the line in which a row waits, or would.
func (k *letters) lineOf(row *outbox.Row) order.Name {
	return order.Name{Topic: row.Topic, Key: uint64(k.slotOf(row, k.keyOf(row)))}
}

// Waits returns the line of a due row whose key waits, and reports whether it does.
func (k *letters) Waits(row *outbox.Row) (order.Name, bool) {
	if k.size.Load() == 0 {
		return order.Name{}, false
	}
	name := k.lineOf(row)
	k.mu.Lock()
	defer k.mu.Unlock()
	return name, k.lines.Waits(row.Ref(), name)
}

// Died reports that the sweeper makes a row a dead letter, before the table is changed.
func (k *letters) Died(row *outbox.Row) {
	if k.hold {
		k.died(row.Ref(), row.Topic, k.slotOf(row, k.keyOf(row)))
	}
}

// TurnOf returns what may be done with a parked row.
func (k *letters) TurnOf(name order.Name, ref outbox.Ref) order.Turn {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lines.TurnOf(name.Key, ref)
}

const (
	// slotsEvery is how often the table is asked for parked rows that nobody knows of, as a late UPDATE of an earlier
	// session may leave them.
	slotsEvery = 2 * time.Minute
	// refreshShare bounds the time that reading the dead letters takes: there may be very many.
	refreshShare = 10
)

// load reads which keys wait, before the first message is sent.
func (k *letters) load(ctx context.Context) error {
	if err := k.Refresh(ctx); err != nil {
		return err
	}
	_, dead := k.heldKeys()
	if waiting := k.size.Load(); waiting > 0 {
		k.log.Info().Int("dead", dead).Int64("keys", waiting).Msg("keys wait behind dead letters, or for what is parked")
	}
	return nil
}

// Refresh follows what persons have done to dead letters: one that was retried is parked, to go first, and its key
// may go on; a new one holds its key. It is called before each pass.
func (k *letters) Refresh(ctx context.Context) error {
	began := time.Now()
	if !k.spent.Swap(false) && began.Before(k.refreshAfter) {
		return nil
	}
	if err := k.refresh(ctx); err != nil {
		k.spent.Store(true)
		return err
	}
	k.refreshAfter = time.Now().Add(refreshShare * time.Since(began))
	return nil
}

func (k *letters) refresh(ctx context.Context) error {
	if k.slotsRead.IsZero() || time.Since(k.slotsRead) > slotsEvery {
		slots, err := k.rows.ParkedSlots(ctx)
		if err != nil {
			return fmt.Errorf("look for parked rows: %w", err)
		}
		k.parked(slots)
		k.slotsRead = time.Now()
	}
	if !k.hold {
		return nil
	}
	k.mu.Lock()
	k.lines.BeginRound()
	k.mu.Unlock()
	dead, err := k.rows.DeadLetters(ctx)
	if err != nil {
		return fmt.Errorf("look for dead letters: %w", err)
	}
	k.mu.Lock()
	unknown, gone := k.lines.Compare(dead)
	k.mu.Unlock()
	for table, ids := range unknown {
		err := k.rows.ReadDead(ctx, table, ids, func(row *outbox.Row) {
			k.Died(row)
			k.Buried(row.Ref(), true)
		})
		if err != nil {
			return fmt.Errorf("read dead letters: %w", err)
		}
	}
	return k.decided(ctx, gone)
}

func (k *letters) parked(slots []store.Slot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, slot := range slots {
		k.lines.Parked(uint64(slot))
	}
	k.size.Store(int64(k.lines.Keys()))
}

// decided deals with dead letters about which a person has decided.
func (k *letters) decided(ctx context.Context, refs []outbox.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	found, err := k.rows.Lookup(ctx, refs)
	if err != nil {
		return fmt.Errorf("look up retried dead letters: %w", err)
	}
	again := k.retried(refs, found)
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
		if row, ok := found[ref]; !ok || row.Status != outbox.Dead {
			k.lines.Decided(ref, retried[ref])
		}
	}
	return nil
}

// retried returns which of the letters are to be sent again, and where to park them till then.
func (k *letters) retried(refs []outbox.Ref, found map[outbox.Ref]store.Found) []store.Parking {
	k.mu.Lock()
	defer k.mu.Unlock()
	var again []store.Parking
	for _, ref := range refs {
		row, ok := found[ref]
		if !ok || row.Status != outbox.Pending && row.Status != outbox.Failed {
			continue
		}
		if slot := k.lines.KeyOf(ref); slot != 0 {
			again = append(again, store.Parking{Ref: ref, Slot: store.Slot(slot)})
		}
	}
	return again
}
