package history

import (
	"context"
	"database/sql"
	"fmt"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Archived is a message in a history. Its Table is the message table that it came from.
type Archived struct {
	store.Message
	History outbox.Table
	// At is when it was archived, as the database prints it.
	At string
}

// Show returns the messages of the histories that an id or msg_id names, the newest first, with their contents.
// Histories that do not exist are left out.
func (hs *Histories) Show(ctx context.Context, idOrMsgID string) ([]Archived, error) {
	named := store.ParseMessageName(idOrMsgID)
	found, err := hs.Find(ctx, named)
	if err != nil || len(found) > 0 || len(named.MsgIDs) > 0 {
		return found, err
	}
	return hs.Find(ctx, store.Filter{MsgIDs: []string{idOrMsgID}})
}

// Find returns the messages of the histories that the filter names by id or msg_id; other conditions are not looked at.
func (hs *Histories) Find(ctx context.Context, f store.Filter) ([]Archived, error) {
	var found []Archived
	for _, table := range hs.store.Tables() {
		err := hs.store.OnTable(ctx, hs.store.Scan(), "look for archived messages of", table.Table, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
			h, err := hs.historyTable(ctx, conn, t)
			if err != nil || h == nil {
				return err
			}
			some, err := hs.archivedMessages(ctx, conn, t, h, store.Filter{IDs: f.IDs, MsgIDs: f.MsgIDs})
			found = append(found, some...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// historyTable describes the history of a table, nil when there is none.
func (hs *Histories) historyTable(ctx context.Context, conn *sql.Conn, t *store.Table) (*store.Table, error) {
	name := hs.cfg.of(t.Table)
	columns, err := mysql.ReadColumns(ctx, conn, name.Database, name.Name)
	if err != nil {
		return nil, err
	}
	if _, ok := find(columns[name.Name], store.ArchivedAt); !ok {
		return nil, nil //nolint:nilnil // none is an answer
	}
	return hs.store.Describe(ctx, conn, name)
}

func (hs *Histories) archivedMessages(ctx context.Context, conn *sql.Conn, t, h *store.Table, f store.Filter) ([]Archived, error) {
	condition, _ := hs.store.Where(h, f)
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("SELECT %s,CONCAT(%s) FROM %s WHERE %s ORDER BY %s DESC LIMIT %d",
		h.MessageList(true), mysql.Identifier(store.ArchivedAt), h.From(), condition, mysql.Identifier(store.ArchivedAt), store.BatchSize))
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	var found []Archived
	for rows.Next() {
		a := Archived{History: h.Table}
		if a.Message, err = hs.store.ScanMessage(rows, h, &a.At); err != nil {
			return nil, err
		}
		a.Table = t.Table
		found = append(found, a)
	}
	return found, rows.Err()
}
