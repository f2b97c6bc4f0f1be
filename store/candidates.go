package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Query says which due rows to read.
type Query struct {
	// Limit is the most rows to return; zero means 500.
	Limit int
	// Grace leaves out pending rows without a next_retry_time that are younger: most likely the stream is about to send
	// them. A create_time in the future, as another time zone makes it, does not hide a row.
	Grace time.Duration
	// Only restricts to one topic, and orders by id.
	Only string
	// Except leaves topics out.
	Except []string
	// Failed and Pending choose the status; neither means both.
	Failed, Pending bool
	// OldestOnly, with Only, returns at most the topic's oldest row, and none while that one is a failed row that is not
	// due yet: what stands behind it must wait for it.
	OldestOnly bool
	// Early, with Only, counts failed rows as due whatever their next_retry_time: a topic that has just opened owes
	// them first, or what is younger would pass them. Claim them by ClaimEarly.
	Early bool
	// DueFrom leaves out rows whose next_retry_time is before it, a text that Now returned. It has no effect with Only.
	DueFrom string
	// Progress, with Except, bounds what is looked at; nil means everything.
	Progress *Progress
	// Deferred, with Only, leaves out pending rows without a next_retry_time: they are still the stream's.
	Deferred bool
}

const defaultLimit = 500

// statuses returns the statuses that the query asks for.
func (q Query) statuses() []outbox.Status {
	switch {
	case q.Pending && !q.Failed:
		return []outbox.Status{outbox.Pending}
	case q.Failed && !q.Pending:
		return []outbox.Status{outbox.Failed}
	}
	return []outbox.Status{outbox.Pending, outbox.Failed}
}

// Candidates reads due rows without locking any: rows that are pending or failed and whose next_retry_time is NULL or
// past. They come by next_retry_time (NULL first) and id, or by id alone with Only. Being a candidate is no right to send:
// the stream may still have to pass the row, and another relay may take it first; see Claim.
func (s *Store) Candidates(ctx context.Context, q Query) ([]outbox.Row, error) {
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	if q.OldestOnly {
		return s.oldest(ctx, q)
	}
	q.Progress.begin()
	var found []outbox.Row
	tables := s.Tables()
	// Each round asks another table first, so that a full one can't starve its neighbours.
	first := int(s.turn.Add(1)) % max(len(tables), 1)
	for i := range tables {
		if len(found) >= q.Limit {
			break
		}
		name := tables[(first+i)%len(tables)].Table
		some := q
		some.Limit = q.Limit - len(found)
		rows, err := s.tableCandidates(ctx, name, some)
		if unlessGone(err) != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	return found, nil
}

func (s *Store) tableCandidates(ctx context.Context, name outbox.Table, q Query) ([]outbox.Row, error) {
	var found []outbox.Row
	err := s.OnTable(ctx, s.scan, "read due rows of", name, func(ctx context.Context, conn *sql.Conn, t *Table) (err error) {
		found = nil
		if q.Only != "" {
			for _, all := range []bool{false, true} {
				if found, err = s.readRows(ctx, conn, t, s.topicQuery(t, q, t.selectList(), all)); err != nil || len(found) > 0 {
					return err
				}
			}
			return nil
		}
		// A NULL time sorts first, so the ranges without a time are read first, and only what is left of the limit from
		// the ranges with one.
		for _, without := range []bool{true, false} {
			var part []outbox.Row
			for _, status := range q.statuses() {
				if q.Limit <= len(found) {
					return nil
				}
				window := ""
				if !without {
					if window, err = s.window(ctx, conn, t, q, status); err != nil {
						return err
					}
				}
				rows, err := s.readRows(ctx, conn, t, s.rangeQuery(t, q, status, without, window, q.Limit-len(found)))
				if err != nil {
					return err
				}
				part = append(part, rows...)
			}
			slices.SortStableFunc(part, t.byDueTime)
			found = append(found, part[:min(len(part), q.Limit-len(found))]...)
		}
		return nil
	})
	return found, err
}

// byDueTime orders rows of one table as the query promises. The texts of one column order as its times do.
func (t *Table) byDueTime(a, b outbox.Row) int {
	if c := strings.Compare(a.NextRetry, b.NextRetry); c != 0 {
		return c
	}
	return t.byIDOrder(a.ID, b.ID)
}

func (t *Table) byIDOrder(a, b uint64) int {
	if t.Unsigned {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(int64(a), int64(b)) //nolint:gosec // the same 64 bits, read as the column's type
}

// rangeQuery reads one range of the index (status, next_retry_time), in the index' own order.
func (s *Store) rangeQuery(t *Table, q Query, status outbox.Status, without bool, window string, limit int) string {
	next, order := t.nextRetry(), t.Col(words.ColumnID)
	condition := t.Col(words.ColumnStatus) + "=" + s.Number(status)
	if without {
		condition += " AND " + next.none() + t.grace(q, status)
	} else {
		condition += " AND " + next.due() + t.dueFrom(q) + window
		order = string(next) + "," + order
	}
	if len(q.Except) > 0 {
		condition += " AND " + t.ExactTopic() + " NOT IN (" + mysql.Literals(q.Except) + ")"
	}
	return fmt.Sprintf("SELECT %s FROM %s%s WHERE %s ORDER BY %s LIMIT %d", t.selectList(), t.From(), t.ByDue(), condition, order, limit)
}

// dueFrom renders the lower bound of the query, "" without one.
func (t *Table) dueFrom(q Query) string {
	if q.DueFrom == "" {
		return ""
	}
	return " AND " + t.nextRetry().dueFrom(q.DueFrom)
}

// grace renders the condition that leaves fresh pending rows to the stream.
func (t *Table) grace(q Query, status outbox.Status) string {
	if q.Grace <= 0 || status != outbox.Pending {
		return ""
	}
	created := t.Col(words.ColumnCreateTime)
	return " AND (" + created + " IS NULL OR " + created + "<=NOW(6)-" + mysql.Interval(q.Grace) + " OR " + created + ">NOW(6))"
}
