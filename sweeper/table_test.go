package sweeper_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

var messages = outbox.Table{Database: "app", Name: "local_message"}

// stored is a row as it stands.
type stored struct {
	row    outbox.Row
	status outbox.Status
	next   time.Time // zero: NULL
	tries  int
	parked store.Slot // 0: not parked
	// fresh is until when the row counts as just written.
	fresh time.Time
}

// table is the local message table, small and honest, with a journal of what was done to it.
type table struct {
	mu      sync.Mutex
	rows    map[uint64]*stored
	locked  map[uint64]bool // by somebody else: skipped by claims
	journal []string
	fail    error
}

func newTable() *table { return &table{rows: map[uint64]*stored{}, locked: map[uint64]bool{}} }

// put adds rows with these ids to a topic: pending, and due since a moment.
func (t *table) put(topic string, status outbox.Status, ids ...uint64) {
	for _, id := range ids {
		t.rows[id] = &stored{status: status, next: time.Now().Add(-time.Second), row: outbox.Row{
			Table: messages, ID: id, MsgID: fmt.Sprintf("m%d", id), Topic: topic, Content: []byte(`{}`), Key: []byte("k"),
		}}
	}
}

func (t *table) status(id uint64) outbox.Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[id].status
}

func (t *table) done() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.journal)
}

func (t *table) setFail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fail = err
}

// pick returns the rows that a query means, by id.
func (t *table) pick(q store.Query) []*stored {
	if q.OldestOnly && !q.Early {
		early := q
		early.Early = true
		if oldest := t.pick(early); len(oldest) == 0 || oldest[0].next.After(time.Now()) {
			return nil // what stands behind it must wait for it
		}
	}
	var picked []*stored
	for _, r := range t.rows {
		due := !r.next.After(time.Now()) || q.Early && r.status == outbox.Failed
		open := r.status == outbox.Pending || r.status == outbox.Failed
		if q.Grace > 0 && time.Now().Before(r.fresh) {
			continue
		}
		if open && due && r.parked == 0 && (q.Only == "" || r.row.Topic == q.Only) && !slices.Contains(q.Except, r.row.Topic) && (!q.Deferred || !r.next.IsZero()) {
			picked = append(picked, r)
		}
	}
	slices.SortFunc(picked, func(a, b *stored) int { return cmp.Compare(a.row.ID, b.row.ID) })
	if q.OldestOnly && len(picked) > 0 {
		return picked[:1]
	}
	return picked[:min(len(picked), q.Limit)]
}

func (t *table) Candidates(_ context.Context, q store.Query) ([]outbox.Row, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []outbox.Row
	for _, r := range t.pick(q) {
		rows = append(rows, r.row)
	}
	return rows, t.fail
}

func (t *table) Backlog(_ context.Context, q store.Query) ([]outbox.Ref, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var refs []outbox.Ref
	for _, r := range t.pick(q) {
		refs = append(refs, r.row.Ref())
	}
	return refs, t.fail
}

func (t *table) Claim(_ context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error) {
	return t.claim("claim", refs, lease, store.Query{})
}

func (t *table) ClaimEarly(_ context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error) {
	return t.claim("claim", refs, lease, store.Query{Early: true})
}

func (t *table) claim(operation string, refs []outbox.Ref, lease time.Duration, q store.Query) ([]outbox.Row, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q.Limit = len(t.rows)
	var rows []outbox.Row
	var claimed []outbox.Ref
	for _, r := range t.pick(q) {
		if slices.Contains(refs, r.row.Ref()) && !t.locked[r.row.ID] {
			row := r.row
			row.RetryCount, row.Status = r.tries, r.status
			if !r.next.IsZero() {
				row.NextRetry = r.next.Format(time.DateTime)
			}
			r.next = time.Now().Add(lease)
			rows = append(rows, row)
			claimed = append(claimed, r.row.Ref())
		}
	}
	t.write(operation, claimed, func(*stored) {})
	return rows, t.fail
}

// write changes rows and notes it. The caller holds mu.
func (t *table) write(operation string, refs []outbox.Ref, change func(*stored)) {
	for _, ref := range refs {
		operation += " " + ref.MsgID
		change(t.rows[ref.ID])
	}
	t.journal = append(t.journal, operation)
}

func (t *table) Release(_ context.Context, refs []outbox.Ref) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write("release", refs, func(r *stored) { r.next = time.Now() })
	return t.fail
}

func (t *table) Park(_ context.Context, rows []store.Parking) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range rows {
		t.write("park", []outbox.Ref{p.Ref}, func(r *stored) { r.status, r.parked = outbox.Pending, p.Slot })
	}
	return t.fail
}

func (t *table) Parked(_ context.Context, slot store.Slot, limit int) ([]outbox.Row, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []outbox.Row
	for _, r := range t.rows {
		if r.parked == slot && r.status == outbox.Pending {
			rows = append(rows, r.row)
		}
	}
	slices.SortFunc(rows, func(a, b outbox.Row) int { return cmp.Compare(a.ID, b.ID) })
	return rows[:min(len(rows), limit)], t.fail
}

func (t *table) ClaimParked(_ context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []outbox.Row
	var claimed []outbox.Ref
	for _, ref := range refs {
		if r := t.rows[ref.ID]; r.parked != 0 && !t.locked[ref.ID] {
			r.parked, r.next = 0, time.Now().Add(lease)
			rows = append(rows, r.row)
			claimed = append(claimed, ref)
		}
	}
	t.write("claim parked", claimed, func(*stored) {})
	return rows, t.fail
}

func (t *table) MarkSent(ctx context.Context, refs []outbox.Ref) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if t.fail == nil {
		t.write("sent", refs, func(r *stored) { r.status = outbox.Sent })
	}
	return int64(len(refs)), t.fail
}

func (t *table) MarkFailed(_ context.Context, failures []store.Failure) (spent []outbox.Ref, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range failures {
		t.write("failed", []outbox.Ref{f.Ref}, func(r *stored) {
			r.tries++
			r.status, r.next = outbox.Failed, time.Now().Add(f.Delay)
			if r.tries > f.MaxRetries {
				r.status = outbox.Dead
				spent = append(spent, f.Ref)
			}
		})
	}
	return spent, t.fail
}

func (t *table) MarkDead(_ context.Context, failures []store.Failure) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range failures {
		t.write("dead", []outbox.Ref{f.Ref}, func(r *stored) { r.status = outbox.Dead })
	}
	return t.fail
}

func (t *table) NextDue(context.Context) (time.Time, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var nearest time.Time
	for _, r := range t.rows {
		if (r.status == outbox.Pending || r.status == outbox.Failed) && r.next.After(time.Now()) && (nearest.IsZero() || r.next.Before(nearest)) {
			nearest = r.next
		}
	}
	return nearest, !nearest.IsZero(), t.fail
}

func (t *table) Now(context.Context) (string, error) { return time.Now().Format(time.DateTime), nil }
