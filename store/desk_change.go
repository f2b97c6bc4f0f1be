package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// Retry makes the chosen messages due now with all their retries ahead: they become failed with retry_count 0, so that
// the sweeper takes them next. Without Statuses it means the failed and the dead ones. Sent, consumed and discarded
// messages are sent again only if Statuses asks for them and Resend is set. With dryRun nothing changes. It returns how
// many messages it changed, or would.
func (s *Store) Retry(ctx context.Context, f Filter, dryRun bool) (int64, error) {
	if len(f.Statuses) == 0 {
		f.Statuses = []outbox.Status{outbox.Failed, outbox.Dead}
	}
	for _, status := range f.Statuses {
		switch status {
		case outbox.Pending, outbox.Failed, outbox.Dead:
		case outbox.Sent, outbox.Consumed, outbox.Discarded:
			if !f.Resend {
				return 0, fmt.Errorf("%w: %s messages are sent again only by --resend", ErrFilter, status)
			}
		default:
			return 0, fmt.Errorf("%w: %s is no status to retry", ErrFilter, status)
		}
	}
	return s.change(ctx, "retry messages of", f, dryRun, func(t *Table) string {
		return s.Becomes(t, outbox.Failed) + "," + t.Col(words.ColumnRetryCount) + "=0," + t.nextRetry().set(dueNow) + "," + t.Touched()
	})
}

// Discard gives the chosen messages up: failed and dead ones only, since any other may be on its way. With dryRun nothing
// changes. It returns how many messages it changed, or would.
func (s *Store) Discard(ctx context.Context, f Filter, dryRun bool) (int64, error) {
	if len(f.Statuses) == 0 {
		f.Statuses = []outbox.Status{outbox.Failed, outbox.Dead}
	}
	for _, status := range f.Statuses {
		if status != outbox.Failed && status != outbox.Dead {
			return 0, fmt.Errorf("%w: only failed and dead messages are discarded, not %s ones", ErrFilter, status)
		}
	}
	return s.change(ctx, "discard messages of", f, dryRun, func(t *Table) string {
		return s.Becomes(t, outbox.Discarded) + "," + t.nextRetry().set(noTime) + "," + t.Touched()
	})
}

// change chooses messages by the filter, oldest first, and updates them batch by batch, each guarded by what it was chosen
// for. A batch that was chosen but has moved on meanwhile is simply not updated.
func (s *Store) change(ctx context.Context, op string, f Filter, dryRun bool, set func(*Table) string) (int64, error) {
	if err := s.checkTable(f); err != nil {
		return 0, err
	}
	var total int64
	for _, table := range s.Tables() {
		left := int64(f.Limit) - total
		if f.Limit > 0 && left <= 0 {
			break
		}
		n, err := s.changeTable(ctx, op, table.Table, f, left, dryRun, set)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func (s *Store) changeTable(ctx context.Context, op string, name outbox.Table, f Filter, left int64, dryRun bool, set func(*Table) string) (int64, error) {
	var total int64
	after, last := "", ""
	for {
		size := int64(BatchSize)
		if f.Limit > 0 {
			size = min(size, left-total)
		}
		var refs []outbox.Ref
		var from string
		err := s.OnTable(ctx, s.scan, op, name, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			refs = nil
			ok, _, err := f.applies(t)
			if !ok || size <= 0 {
				return err
			}
			from = s.Numbers(f.Statuses)
			condition, indexHint := s.Where(t, f)
			if after != "" {
				condition += " AND " + t.Col(words.ColumnID) + ">" + after
			}
			refs, err = ReadRefs(ctx, conn, t, fmt.Sprintf("SELECT %s,%s FROM %s%s WHERE %s ORDER BY %s LIMIT %d",
				t.Col(words.ColumnID), t.Col(words.ColumnMsgID), t.From(), indexHint, condition, t.Col(words.ColumnID), size))
			if len(refs) > 0 {
				last = t.FormatID(refs[len(refs)-1].ID)
			}
			return err
		})
		if err != nil || len(refs) == 0 {
			return total, err
		}
		after = last
		n := int64(len(refs))
		if !dryRun {
			if n, err = s.Update(ctx, s.work, op, refs, from, set); err != nil {
				return total, err
			}
		}
		total += n
	}
}

// Numbers renders a list of the stored numbers of statuses.
func (s *Store) Numbers(statuses []outbox.Status) string {
	texts := make([]string, len(statuses))
	for i, status := range statuses {
		texts[i] = s.Number(status)
	}
	return strings.Join(texts, ",")
}
