package relay_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// This file is the world's dead letters: what is parked behind them, and the person who decides about them.

// claimable is which rows a claim takes.
type claimable uint8

const (
	claimDue claimable = iota
	claimEarly
	claimParked
)

func (r *tableRow) claimable(which claimable) bool {
	if which == claimParked {
		return r.parked != 0 && r.status == outbox.Pending
	}
	return r.due(store.Query{Early: which == claimEarly})
}

// die makes a row a dead letter. The caller holds mu.
func (w *world) die(r *tableRow) {
	if !r.died {
		w.letters = append(w.letters, r)
	}
	r.status, r.next, r.died = outbox.Dead, time.Time{}, true
}

func (h *hands) Park(ctx context.Context, rows []store.Parking) error {
	for _, p := range rows {
		err := h.update(ctx, opPark, []outbox.Ref{p.Ref}, func(r *tableRow) {
			r.status, r.parked = outbox.Pending, p.Slot
			r.next = time.Now().AddDate(100, 0, 0)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *hands) Parked(_ context.Context, slot store.Slot, limit int) ([]outbox.Row, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	var rows []outbox.Row
	for _, r := range h.unsettled() {
		if r.parked == slot && r.status == outbox.Pending && len(rows) < limit {
			rows = append(rows, r.row)
		}
	}
	return rows, nil
}

func (h *hands) ClaimParked(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error) {
	return h.claim(ctx, opClaimParked, refs, lease, claimParked)
}

func (h *hands) ParkedSlots(context.Context) ([]store.Slot, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	var slots []store.Slot
	for _, r := range h.unsettled() {
		if r.parked != 0 && !slices.Contains(slots, r.parked) {
			slots = append(slots, r.parked)
		}
	}
	return slots, nil
}

func (h *hands) CountParked(ctx context.Context) (rows, keys int64, err error) {
	slots, err := h.ParkedSlots(ctx)
	return int64(h.parked()), int64(len(slots)), err
}

func (h *hands) CanPark() error { return h.cannotPark }

func (h *hands) DeadLetters(context.Context) (map[outbox.Table][]uint64, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	dead := map[outbox.Table][]uint64{messages: nil}
	for id, r := range h.table {
		if r.status == outbox.Dead {
			dead[messages] = append(dead[messages], id)
		}
	}
	return dead, nil
}

func (h *hands) ReadDead(_ context.Context, _ outbox.Table, ids []uint64, visit func(*outbox.Row)) error {
	if err := h.enter(true); err != nil {
		return err
	}
	var rows []outbox.Row
	for _, id := range ids {
		if r := h.table[id]; r != nil && r.status == outbox.Dead {
			rows = append(rows, r.row)
		}
	}
	h.mu.Unlock()
	for i := range rows {
		visit(&rows[i])
	}
	return nil
}

// notePassed looks whether a record comes while an earlier message of its key is a dead letter. The caller holds mu.
func (w *world) notePassed(rec *router.Record) {
	msgID := header(rec, "msg_id")
	for _, r := range w.letters { // not the table: this is done for each record of a story
		if r.status == outbox.Dead && r.row.Topic == rec.Topic && string(r.row.Key) == string(rec.Key) && r.row.MsgID < msgID {
			w.passed = append(w.passed, fmt.Sprintf("%s before the dead %s", msgID, r.row.MsgID))
		}
	}
}

// decision is what a person does about a dead letter.
type decision uint8

const (
	retryIt      decision = iota // outbox-relay messages retry, after mending the row
	retryAsItIs                  // the same without mending it: it may die again
	retryBySQL                   // UPDATE ... SET status = 0, after mending it
	discardIt                    // outbox-relay messages discard
	decisionKind                 // how many there are
)

// decide lets a person decide about dead letters, all of them or a part, and returns how many there were.
func (w *world) decide(what decision, all bool) (dead int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsettled() // so that none is listed twice
	var rows []*tableRow
	for _, r := range w.table {
		if r.status == outbox.Dead {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *tableRow) int { return cmp.Compare(a.row.ID, b.row.ID) })
	for _, r := range rows {
		if !all && w.random.IntN(2) == 0 {
			continue
		}
		switch what {
		case retryIt, retryAsItIs:
			r.status, r.tries, r.next = outbox.Failed, 0, time.Now()
		case retryBySQL:
			r.status, r.tries, r.next = outbox.Pending, 0, time.Time{}
		default:
			r.status = outbox.Discarded
			continue
		}
		if what != retryAsItIs {
			r.row.Content = []byte(`{}`)
		}
		w.open = append(w.open, r)
	}
	slices.SortFunc(w.open, func(a, b *tableRow) int { return cmp.Compare(a.row.ID, b.row.ID) })
	return len(rows)
}

// poison commits a message that can't be sent before somebody mends it.
func (w *world) poison(topic, key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	row := w.insert(topic, key, time.Time{})
	row.Content = []byte{}
	w.table[row.ID].row = row
	w.logRows([]outbox.Row{row})
	return row.MsgID
}

// status returns how a message stands.
func (w *world) status(msgID string) outbox.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.table {
		if r.row.MsgID == msgID {
			return r.status
		}
	}
	return outbox.Foreign
}

// parked returns how many rows are.
func (w *world) parked() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.unsettled() {
		if r.parked != 0 {
			n++
		}
	}
	return n
}
