package relay_test

import (
	"context"
	"maps"
	"slices"
	"time"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// This file is the world's table.

// unsettled returns the rows that are pending or failed, by id. The caller holds mu.
func (w *world) unsettled() []*tableRow {
	w.open = slices.DeleteFunc(w.open, func(r *tableRow) bool { return r.status != outbox.Pending && r.status != outbox.Failed })
	return w.open
}

// update changes rows that are pending or failed.
func (h *hands) update(ctx context.Context, op operation, refs []outbox.Ref, change func(*tableRow)) error {
	if err := h.trouble.before(ctx, op, refs); err != nil {
		return err
	}
	if err := h.change(refs, change); err != nil {
		return err
	}
	return h.trouble.after(op, refs)
}

func (h *hands) change(refs []outbox.Ref, change func(*tableRow)) error {
	if err := h.enter(true); err != nil {
		return err
	}
	defer h.mu.Unlock()
	for _, ref := range refs {
		if r := h.table[ref.ID]; r != nil && (r.status == outbox.Pending || r.status == outbox.Failed) {
			change(r)
		}
	}
	return nil
}

func (h *hands) MarkSent(ctx context.Context, refs []outbox.Ref) (int64, error) {
	return int64(len(refs)), h.update(ctx, opSent, refs, func(r *tableRow) { r.status, r.next = outbox.Sent, time.Time{} })
}

func (h *hands) MarkFailed(ctx context.Context, failures []store.Failure) ([]outbox.Ref, error) {
	var dead []outbox.Ref
	for _, f := range failures {
		err := h.update(ctx, opFailed, []outbox.Ref{f.Ref}, func(r *tableRow) {
			r.tries++
			r.status, r.next = outbox.Failed, time.Now().Add(f.Delay)
			if r.tries > f.MaxRetries {
				h.die(r)
				dead = append(dead, f.Ref)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return dead, nil
}

func (h *hands) MarkDead(ctx context.Context, failures []store.Failure) error {
	for _, f := range failures {
		if err := h.update(ctx, opDead, []outbox.Ref{f.Ref}, h.die); err != nil {
			return err
		}
	}
	return nil
}

func (h *hands) Defer(ctx context.Context, refs []outbox.Ref) error {
	return h.update(ctx, opDefer, refs, func(r *tableRow) {
		if r.status == outbox.Pending {
			r.next = time.Now()
		}
	})
}

func (h *hands) Release(ctx context.Context, refs []outbox.Ref) error {
	return h.update(ctx, opRelease, refs, func(r *tableRow) { r.next = time.Now() })
}

func (h *hands) Lookup(_ context.Context, refs []outbox.Ref) (map[outbox.Ref]store.Found, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	found := make(map[outbox.Ref]store.Found)
	for _, ref := range refs {
		if r := h.table[ref.ID]; r != nil {
			found[ref] = store.Found{Status: r.status, HasNextRetry: !r.next.IsZero()}
		}
	}
	return found, nil
}

func (h *hands) ClosedTopics(_ context.Context, lease time.Duration, everything bool) ([]string, error) {
	defer h.trouble.after(opClosedTopics, nil) //nolint:errcheck // only to let something happen right after the reading
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	names := map[string]bool{}
	for _, r := range h.unsettled() {
		recorded := r.parked == 0 && !r.next.IsZero() && (!r.next.After(time.Now()) || r.next.Equal(r.lease))
		pending := r.status == outbox.Pending && (everything || recorded)
		if r.status == outbox.Failed || pending {
			names[r.row.Topic] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

func (h *hands) ClaimedTopics(_ context.Context, lease time.Duration) ([]string, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	names := map[string]bool{}
	for _, r := range h.unsettled() {
		if r.status == outbox.Pending && r.next.After(time.Now()) && r.next.Equal(r.lease) {
			names[r.row.Topic] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

func (h *hands) Offset(context.Context) (time.Duration, error) { return 0, nil }

func (h *hands) LastIDs(context.Context) (map[outbox.Table]uint64, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	return map[outbox.Table]uint64{messages: h.nextID - 1}, nil
}

func (h *hands) Unrecorded(ctx context.Context, last map[outbox.Table]uint64, limit int) ([]outbox.Ref, error) {
	if err := h.trouble.before(ctx, opUnrecorded, nil); err != nil {
		return nil, err
	}
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	var refs []outbox.Ref
	for _, r := range h.unsettled() {
		if r.row.ID <= last[messages] && len(refs) < limit && r.status == outbox.Pending && r.next.IsZero() {
			refs = append(refs, r.row.Ref())
		}
	}
	return refs, nil
}

func (h *hands) Count(context.Context) (map[outbox.Status]int64, time.Duration, error) {
	return nil, 0, nil
}

func (h *hands) Refresh(context.Context) error { return nil }

func (h *hands) NextDue(context.Context) (time.Time, bool, error) {
	if err := h.enter(true); err != nil {
		return time.Time{}, false, err
	}
	defer h.mu.Unlock()
	var nearest time.Time
	for _, r := range h.unsettled() {
		if r.parked == 0 && r.next.After(time.Now()) && (nearest.IsZero() || r.next.Before(nearest)) {
			nearest = r.next
		}
	}
	return nearest, !nearest.IsZero(), nil
}

// due is the store's idea of which rows a query returns.
func (r *tableRow) due(q store.Query) bool {
	switch {
	case r.parked != 0:
		return false
	case q.Only != "" && r.row.Topic != q.Only, slices.Contains(q.Except, r.row.Topic):
		return false
	case r.status == outbox.Failed:
		return q.Early || !r.next.After(time.Now())
	case r.status != outbox.Pending:
		return false
	case r.next.IsZero():
		return !q.Deferred
	case q.DueFrom != "" && civil(r.next) < q.DueFrom:
		return false
	}
	return !r.next.After(time.Now())
}

// civil is a time as the database prints it.
func civil(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000000") }

func (h *hands) Now(context.Context) (string, error) { return civil(time.Now()), nil }

func (h *hands) Candidates(_ context.Context, q store.Query) ([]outbox.Row, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	if q.OldestOnly {
		early := q
		early.Early, early.Limit = true, 1
		oldest := h.pick(early)
		if len(oldest) == 0 || !h.table[oldest[0].ID].due(q) {
			return nil, nil
		}
		return oldest, nil
	}
	return h.pick(q), nil
}

// pick returns the rows that a query means, by id. The caller holds mu.
func (h *hands) pick(q store.Query) []outbox.Row {
	var rows []outbox.Row
	for _, r := range h.unsettled() {
		if len(rows) < q.Limit && r.due(q) {
			row := r.row
			row.RetryCount, row.NextRetry = r.tries, ""
			if !r.next.IsZero() {
				row.NextRetry = civil(r.next)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func (h *hands) Backlog(_ context.Context, q store.Query) ([]outbox.Ref, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	var refs []outbox.Ref
	for _, row := range h.pick(q) {
		refs = append(refs, row.Ref())
	}
	return refs, nil
}

func (h *hands) Claim(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error) {
	return h.claim(ctx, opClaim, refs, lease, claimDue)
}

func (h *hands) ClaimEarly(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error) {
	return h.claim(ctx, opClaimEarly, refs, lease, claimEarly)
}

func (h *hands) claim(ctx context.Context, op operation, refs []outbox.Ref, lease time.Duration, which claimable) ([]outbox.Row, error) {
	if err := h.trouble.before(ctx, op, refs); err != nil {
		return nil, err
	}
	rows, err := h.claimUnlocked(h.trouble.unlocked(op, refs), lease, which)
	if err != nil {
		return nil, err
	}
	if err := h.trouble.after(op, refs); err != nil {
		return nil, err
	}
	return rows, nil
}

func (h *hands) claimUnlocked(refs []outbox.Ref, lease time.Duration, which claimable) ([]outbox.Row, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	var rows []outbox.Row
	for _, ref := range refs {
		if r := h.table[ref.ID]; r != nil && r.claimable(which) {
			row := r.row
			row.RetryCount, row.NextRetry = r.tries, ""
			if !r.next.IsZero() {
				row.NextRetry = civil(r.next)
			}
			rows = append(rows, row)
			r.next, r.parked = time.Now().Add(lease), 0
			r.lease = r.next
		}
	}
	return rows, nil
}
