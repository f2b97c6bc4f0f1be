package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Rows to archive are found along the index on (status, next_retry_time): behind its columns it has the id, so the rows of
// one status without a next_retry_time stand there by id, which is about by age, and those with one by that time. Each of
// these ranges is a lane. Rows of other statuses, dead letters say, are never touched on the way. A table without the index has
// one lane, its primary key. update_time is in no index, so each row of a chunk is looked at; a chunk has a bound.

// Lanes returns in how many lanes the rows of a table are looked for.
func (s *Store) Lanes(table outbox.Table) int {
	if t, err := s.table(table); err == nil && t.due == "" {
		return 1
	}
	return 2 * len(s.cfg.Archive.Statuses)
}

// Place is how far a lane was looked along. The zero Place is its beginning.
type Place struct {
	ID   uint64
	next string // the next_retry_time in a lane of rows that have one
	set  bool
}

// Looked is one chunk of a lane.
type Looked struct {
	// IDs are the rows that are old enough and have a status to archive.
	IDs []uint64
	// Rows is how many were looked at, fewer than the limit only at the lane's end.
	Rows int
	// Young tells that all of them were created too short a time ago for any to be old enough.
	Young bool
	// Next is where to go on.
	Next Place
}

// Look reads the next chunk of a lane, at most limit rows, without locks.
func (s *Store) Look(ctx context.Context, table outbox.Table, lane int, from Place, limit int) (Looked, error) {
	var looked Looked
	err := s.OnTable(ctx, s.scan, "look for rows to archive in", table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		rows, err := conn.QueryContext(ctx, s.lookQuery(t, lane, from, limit))
		if err != nil {
			return err
		}
		defer closeRows(rows)
		looked = Looked{Young: true, Next: from}
		for rows.Next() {
			var id string
			var next sql.NullString
			var old, born sql.NullBool
			if err := rows.Scan(&id, &next, &old, &born); err != nil {
				return err
			}
			number, err := t.ParseID(id)
			if err != nil {
				return err
			}
			looked.Rows++
			looked.Next = Place{ID: number, next: next.String, set: true}
			looked.Young = looked.Young && born.Valid && !born.Bool
			if old.Bool {
				looked.IDs = append(looked.IDs, number)
			}
		}
		return rows.Err()
	})
	return looked, err
}

// lookQuery renders the chunk's query. What tells whether a row is old is computed for the rows of the chunk only.
func (s *Store) lookQuery(t *Table, lane int, from Place, limit int) string {
	id, next := t.Col(words.ColumnID), t.Col(words.ColumnNextRetryTime)
	list := fmt.Sprintf("SELECT %s,CONCAT(%s),%s IN (%s) AND %s,%s FROM %s", id, next, t.Col(words.ColumnStatus), s.Numbers(s.cfg.Archive.Statuses),
		s.isOld(t, words.ColumnUpdateTime), s.isOld(t, words.ColumnCreateTime), t.From())
	behind := ""
	if from.set {
		behind = id + ">" + t.FormatID(from.ID)
	}
	if t.due == "" {
		if behind != "" {
			behind = " WHERE " + behind
		}
		return fmt.Sprintf("%s%s%s ORDER BY %s LIMIT %d", list, t.ByID(), behind, id, limit)
	}
	is := t.Col(words.ColumnStatus) + "=" + s.Number(s.cfg.Archive.Statuses[lane/2])
	if lane%2 == 0 {
		if behind != "" {
			behind = " AND " + behind
		}
		return fmt.Sprintf("%s%s WHERE %s AND %s IS NULL%s ORDER BY %s LIMIT %d", list, t.ByDue(), is, next, behind, id, limit)
	}
	condition := next + " IS NOT NULL"
	if from.set {
		at := mysql.Literal(from.next)
		condition = fmt.Sprintf("(%s>%s OR (%s=%s AND %s))", next, at, next, at, behind)
	}
	return fmt.Sprintf("%s%s WHERE %s AND %s ORDER BY %s,%s LIMIT %d", list, t.ByDue(), is, condition, next, id, limit)
}

// EstimateCap is where ArchiveEstimate stops counting.
const EstimateCap = 5_000_000

// ArchiveEstimate returns about how many rows of a table are old enough to archive, counting to EstimateCap at most: those
// with a status to archive up to the newest id that was created long enough ago, as far as ids follow the time. It reads
// the index only.
func (s *Store) ArchiveEstimate(ctx context.Context, table outbox.Table) (int64, error) {
	var total int64
	err := s.OnTable(ctx, s.scan, "estimate the rows to archive in", table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		total = 0
		last, ok, err := s.lastOldID(ctx, conn, t)
		if err != nil || !ok {
			return err
		}
		for _, status := range s.cfg.Archive.Statuses {
			var n int64
			err := conn.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 FROM %s%s WHERE %s=%s AND %s<=%s LIMIT %d) AS some",
				t.From(), t.ByDue(), t.Col(words.ColumnStatus), s.Number(status), t.Col(words.ColumnID), last, EstimateCap)).Scan(&n)
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
func (s *Store) lastOldID(ctx context.Context, conn *sql.Conn, t *Table) (id string, ok bool, err error) {
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
			t.Col(words.ColumnID), s.isOld(t, words.ColumnCreateTime), t.From(), t.ByID(), t.Col(words.ColumnID), t.FormatID(middle^flip), t.Col(words.ColumnID))).Scan(&found, &old)
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
