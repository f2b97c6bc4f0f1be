package history

import (
	"context"
	"database/sql"
	"fmt"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Rows to archive are found along the lanes of the statuses to archive (store.Lane). Rows of other statuses, dead letters say, are
// never touched on the way. A table without the index has one lane, its primary key. update_time is in no index, so each row of a chunk is looked at; a chunk has a bound.

// Lanes returns in how many lanes the rows of a table are looked for.
func (hs *Histories) Lanes(table outbox.Table) int {
	for _, t := range hs.store.Tables() {
		if t.Table == table && t.ByDue() == "" {
			return 1
		}
	}
	return 2 * len(hs.cfg.Statuses)
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
	Next store.Spot
}

// Look reads the next chunk of a lane, at most limit rows, without locks.
func (hs *Histories) Look(ctx context.Context, table outbox.Table, lane int, from store.Spot, limit int) (Looked, error) {
	var looked Looked
	err := hs.store.OnTable(ctx, hs.store.Scan(), "look for rows to archive in", table, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
		rows, err := conn.QueryContext(ctx, hs.lookQuery(t, lane, from, limit))
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
			looked.Next = store.SpotAt(number, next.String)
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
func (hs *Histories) lookQuery(t *store.Table, lane int, from store.Spot, limit int) string {
	id, next := t.Col(words.ColumnID), t.Col(words.ColumnNextRetryTime)
	list := fmt.Sprintf("SELECT %s,CONCAT(%s),%s IN (%s) AND %s,%s FROM %s", id, next, t.Col(words.ColumnStatus), hs.store.Numbers(hs.cfg.Statuses),
		hs.isOld(t, words.ColumnUpdateTime), hs.isOld(t, words.ColumnCreateTime), t.From())
	if t.ByDue() == "" {
		behind := ""
		if from.Set {
			behind = " WHERE " + id + ">" + t.FormatID(from.ID)
		}
		return fmt.Sprintf("%s%s%s ORDER BY %s LIMIT %d", list, t.ByID(), behind, id, limit)
	}
	l := store.Lane{Status: hs.cfg.Statuses[lane/2], Timed: lane%2 == 1}
	return fmt.Sprintf("%s%s WHERE %s ORDER BY %s LIMIT %d", list, t.ByDue(), hs.store.Behind(t, l, from), t.Order(l), limit)
}
