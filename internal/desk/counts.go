package desk

import (
	"context"
	"fmt"

	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Counts is how many rows have which status.
type Counts struct {
	Pending              int64   `json:"pending"`
	Failed               int64   `json:"failed"`
	Dead                 int64   `json:"dead"`
	OldestPendingSeconds float64 `json:"oldest_pending_seconds"`
	// Cap is where counting stops, for each table: more is "that many or more".
	Cap int64 `json:"counted_up_to"`
}

// CountRows counts what is unfinished in all tables.
func CountRows(ctx context.Context, rows *store.Store) (*Counts, error) {
	stats, err := rows.Stats(ctx)
	if err != nil {
		return nil, fmt.Errorf("count the rows: %w", err)
	}
	v := &Counts{Cap: store.CountCap}
	for _, t := range stats.Tables {
		v.add(t)
	}
	return v, nil
}

// add counts one table.
func (v *Counts) add(t store.TableStats) {
	v.Pending += t.Counts[outbox.Pending]
	v.Failed += t.Counts[outbox.Failed]
	v.Dead += t.Counts[outbox.Dead]
	v.OldestPendingSeconds = max(v.OldestPendingSeconds, human.Seconds(t.OldestPending))
}
