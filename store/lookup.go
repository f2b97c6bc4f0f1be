package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// Found is how a row stands in the table.
type Found struct {
	Status outbox.Status
	// HasNextRetry tells that next_retry_time is set: a pending row with one is the sweeper's.
	HasNextRetry bool
}

// Lookup reads how rows stand, by primary key. A ref whose row is missing, or has another msg_id, is missing from the
// answer; that is no proof that the row is gone, because a row is in the binlog before it is readable. Archived rows are
// found in their history.
func (s *Store) Lookup(ctx context.Context, refs []outbox.Ref) (map[outbox.Ref]Found, error) {
	found := make(map[outbox.Ref]Found, len(refs))
	for _, g := range ByTable(refs) {
		wanted := make(map[outbox.Ref]bool, len(g.Refs))
		for _, ref := range g.Refs {
			wanted[ref] = true
		}
		err := s.OnTable(ctx, s.work, "look up rows of", g.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			rows, err := conn.QueryContext(ctx, "SELECT "+t.Col(words.ColumnID)+","+t.Col(words.ColumnMsgID)+","+t.Col(words.ColumnStatus)+","+
				t.nextRetry().timed()+" FROM "+t.From()+t.ByID()+" WHERE "+t.Col(words.ColumnID)+" IN ("+t.IDs(g.Refs)+")")
			if err != nil {
				return err
			}
			defer closeRows(rows)
			for rows.Next() {
				var id, msgID sql.RawBytes
				var status int64
				var hasNext bool
				if err := rows.Scan(&id, &msgID, &status, &hasNext); err != nil {
					return err
				}
				number, err := t.ParseID(string(id))
				if err != nil {
					return err
				}
				if ref := (outbox.Ref{Table: g.Table, ID: number, MsgID: string(msgID)}); wanted[ref] {
					found[ref] = Found{Status: s.cfg.Statuses.Of(status), HasNextRetry: hasNext}
				}
			}
			return rows.Err()
		})
		if err == nil {
			err = s.lookupArchived(ctx, g, found)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// LastIDs returns the highest id of each table that has rows.
func (s *Store) LastIDs(ctx context.Context) (map[outbox.Table]uint64, error) {
	last := map[outbox.Table]uint64{}
	for _, table := range s.Tables() {
		err := s.OnTable(ctx, s.work, "read the last id of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			var id string
			err := conn.QueryRowContext(ctx, fmt.Sprintf("SELECT %s FROM %s ORDER BY %s DESC LIMIT 1", t.Col(words.ColumnID), t.From(), t.Col(words.ColumnID))).Scan(&id)
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			number, err := t.ParseID(id)
			last[t.Table] = number
			return err
		})
		if unlessGone(err) != nil {
			return nil, err
		}
	}
	return last, nil
}

// Unrecorded returns pending rows without a next_retry_time, of each table up to its last id, by id: rows that nothing in
// the table marks as the sweeper's. Deferring them takes them off the next answer; an empty one says that none is left.
func (s *Store) Unrecorded(ctx context.Context, last map[outbox.Table]uint64, limit int) ([]outbox.Ref, error) {
	for table, id := range last {
		var refs []outbox.Ref
		err := s.OnTable(ctx, s.scan, "read pending rows of", table, func(ctx context.Context, conn *sql.Conn, t *Table) (err error) {
			refs, err = ReadRefs(ctx, conn, t, s.unrecordedQuery(t, id, limit))
			return err
		})
		if unlessGone(err) != nil || len(refs) > 0 {
			return refs, err
		}
	}
	return nil, nil
}

// unrecordedQuery reads one range of the index, in which the rows stand by id.
func (s *Store) unrecordedQuery(t *Table, last uint64, limit int) string {
	return fmt.Sprintf("SELECT %s,%s FROM %s%s WHERE %s=%s AND %s AND %s<=%s ORDER BY %s LIMIT %d",
		t.Col(words.ColumnID), t.Col(words.ColumnMsgID), t.From(), t.ByDue(), t.Col(words.ColumnStatus), s.Number(outbox.Pending), t.nextRetry().none(),
		t.Col(words.ColumnID), t.FormatID(last), t.Col(words.ColumnID), limit)
}
