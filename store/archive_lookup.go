package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// lookupArchived adds the rows that Lookup did not find in their table and that are in its history, so that a stream that
// reads old binlog again takes them for what they are: sent. The history is asked after the table, since rows go that way
// only. A history that is missing or may not be read tells nothing: then a message may be sent twice.
func (s *Store) lookupArchived(ctx context.Context, g Group, found map[outbox.Ref]Found) error {
	if !s.cfg.Archive.Enabled {
		return nil
	}
	missing := map[outbox.Ref]bool{}
	var refs []outbox.Ref
	for _, ref := range g.Refs {
		if _, ok := found[ref]; !ok {
			missing[ref] = true
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	err := s.OnTable(ctx, s.work, "look up archived rows of", g.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		rows, err := conn.QueryContext(ctx, strings.Join([]string{
			"SELECT ", t.Col(words.ColumnID), ",", t.Col(words.ColumnMsgID), ",", t.Col(words.ColumnStatus), " FROM ",
			outbox.QuoteTable(outbox.HistoryName(s.cfg.Archive.Table, t.Table)), " WHERE ", t.Col(words.ColumnID), " IN (", t.IDs(refs), ")",
		}, ""))
		if kind := mysql.Describe("", err); errors.Is(kind, ErrGone) || errors.Is(kind, ErrSchema) || errors.Is(kind, ErrPrivilege) {
			return nil
		}
		if err != nil {
			return err
		}
		defer closeRows(rows)
		for rows.Next() {
			var id, msgID sql.RawBytes
			var status int64
			if err := rows.Scan(&id, &msgID, &status); err != nil {
				return err
			}
			number, err := t.ParseID(string(id))
			if err != nil {
				return err
			}
			if ref := (outbox.Ref{Table: g.Table, ID: number, MsgID: string(msgID)}); missing[ref] {
				found[ref] = Found{Status: s.cfg.Statuses.Of(status)}
			}
		}
		return rows.Err()
	})
	return err
}
