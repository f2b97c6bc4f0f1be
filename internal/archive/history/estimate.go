package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// EstimateCap is where Estimate stops counting.
const EstimateCap = 5_000_000

// Estimate returns about how many rows of a table are old enough to archive, counting to EstimateCap at most: those
// with a status to archive up to the newest id that was created long enough ago, as far as ids follow the time. It reads
// the index only.
func (hs *Histories) Estimate(ctx context.Context, table outbox.Table) (int64, error) {
	var total int64
	err := hs.store.OnTable(ctx, hs.store.Scan(), "estimate the rows to archive in", table, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
		total = 0
		last, ok, err := hs.lastOldID(ctx, conn, t)
		if err != nil || !ok {
			return err
		}
		for _, status := range hs.cfg.Statuses {
			var n int64
			err := conn.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 FROM %s%s WHERE %s=%s AND %s<=%s LIMIT %d) AS some",
				t.From(), t.ByDue(), t.Col(words.ColumnStatus), hs.store.Number(status), t.Col(words.ColumnID), last, EstimateCap)).Scan(&n)
			if err != nil {
				return err
			}
			total += n
		}
		return nil
	})
	return total, err
}

// lastOldID searches the primary key by halves for the last row that was created long enough ago.
func (hs *Histories) lastOldID(ctx context.Context, conn *sql.Conn, t *store.Table) (id string, ok bool, err error) {
	// In this order of the 64 bits a signed column's negative ids come first.
	flip := uint64(1) << 63
	if t.Unsigned {
		flip = 0
	}
	low, high := uint64(0), ^uint64(0)
	for low <= high {
		middle := low + (high-low)/2
		var found string
		var old bool
		err := conn.QueryRowContext(ctx, fmt.Sprintf("SELECT %s,COALESCE(%s,1) FROM %s%s WHERE %s>=%s ORDER BY %s LIMIT 1",
			t.Col(words.ColumnID), hs.isOld(t, words.ColumnCreateTime), t.From(), t.ByID(), t.Col(words.ColumnID), t.FormatID(middle^flip), t.Col(words.ColumnID))).Scan(&found, &old)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return "", false, err
		}
		if err != nil || !old {
			if middle == 0 {
				break
			}
			high = middle - 1
			continue
		}
		number, err := t.ParseID(found)
		if err != nil {
			return "", false, err
		}
		id, ok = found, true
		if number^flip == ^uint64(0) {
			break
		}
		low = (number ^ flip) + 1
	}
	return id, ok, nil
}
