package history

import (
	"context"
	"database/sql"
	"regexp"

	"example.com/outbox-relay/outbox"
)

// copiedColumns are the columns that go to a history, and the two definitions of which that was found out.
type copiedColumns struct {
	definitions string
	names       []string
}

// copied returns the columns that go to the history. Both tables are locked against being altered by tx. information_schema is dear
// on a busy server, so it is asked only when a definition has changed.
func (hs *Histories) copied(ctx context.Context, tx *sql.Tx, table, history outbox.Table) ([]string, error) {
	source, err := definition(ctx, tx, table)
	if err != nil {
		return nil, err
	}
	target, err := definition(ctx, tx, history)
	if err != nil {
		return nil, err
	}
	definitions := source + target
	hs.mu.RLock()
	known := hs.copiedTo[history]
	hs.mu.RUnlock()
	if known.definitions == definitions {
		return known.names, nil
	}
	both, err := readShapes(ctx, tx, table, history)
	if err != nil {
		return nil, err
	}
	names, err := both.copied()
	if err != nil {
		return nil, err
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.copiedTo[history] = copiedColumns{definitions: definitions, names: names}
	return names, nil
}

// nextID is what changes in a definition with every row.
var nextID = regexp.MustCompile(` AUTO_INCREMENT=\d+`)

func definition(ctx context.Context, tx *sql.Tx, table outbox.Table) (string, error) {
	var name, text string
	if err := tx.QueryRowContext(ctx, "SHOW CREATE TABLE "+outbox.QuoteTable(table)).Scan(&name, &text); err != nil {
		return "", err
	}
	return nextID.ReplaceAllString(text, ""), nil
}
