package store

import (
	"context"
	"database/sql"

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
	for _, g := range byTable(refs) {
		wanted := make(map[outbox.Ref]bool, len(g.refs))
		for _, ref := range g.refs {
			wanted[ref] = true
		}
		err := s.onTable(ctx, s.work, "look up rows of", g.table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			rows, err := conn.QueryContext(ctx, "SELECT "+t.col("id")+","+t.col("msg_id")+","+t.col("status")+","+
				t.col("next_retry_time")+" IS NOT NULL FROM "+t.from()+t.byID()+" WHERE "+t.col("id")+" IN ("+t.ids(g.refs)+")")
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
				number, err := t.parseID(string(id))
				if err != nil {
					return err
				}
				if ref := (outbox.Ref{Table: g.table, ID: number, MsgID: string(msgID)}); wanted[ref] {
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
