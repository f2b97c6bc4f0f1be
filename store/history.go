package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// ArchivedAt is a history's own column: when the row came. By it a history is told from a message table.
const ArchivedAt = "archived_at"

// ArchivedAtType is the type of ArchivedAt.
const ArchivedAtType = "DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)"

// checkHistories looks at the tables that are left out because archive.table names them as the history of another one. One
// of them that is no history by its columns is a mistake that would keep messages from being sent, so it is an error.
func checkHistories(ctx context.Context, conn *sql.Conn, histories []outbox.Table) error {
	names := map[string][]string{}
	for _, history := range histories {
		names[history.Database] = append(names[history.Database], history.Name)
	}
	for _, database := range slices.Sorted(maps.Keys(names)) {
		columns, err := mysql.ReadColumns(ctx, conn, database, names[database]...)
		if err != nil {
			return err
		}
		for _, name := range names[database] {
			if slices.ContainsFunc(columns[name], func(c mysql.Column) bool { return strings.EqualFold(c.Name, ArchivedAt) }) {
				continue
			}
			history := outbox.Table{Database: database, Name: name}
			return schemaError(ErrSchema, "%s is what archive.table calls a history, and source.tables matches it too, but it has no column %s: choose another archive.table if it is a message table, else run ALTER TABLE %s ADD COLUMN %s %s",
				history, ArchivedAt, outbox.QuoteTable(history), ArchivedAt, ArchivedAtType)
		}
	}
	return nil
}

// lookupArchived adds the rows that Lookup did not find in their table and that are in its history, so that a stream that
// reads old binlog again takes them for what they are: sent. The history is asked after the table, since rows go that way
// only. A history that is missing or may not be read tells nothing: then a message may be sent twice.
func (s *Store) lookupArchived(ctx context.Context, g Group, found map[outbox.Ref]Found) error {
	if s.cfg.History == "" {
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
			outbox.QuoteTable(outbox.HistoryName(s.cfg.History, t.Table)), " WHERE ", t.Col(words.ColumnID), " IN (", t.IDs(refs), ")",
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
