package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// archive checks what archiving needs of one table: its history as it stands, and each privilege.
func (i *inspection) archive(ctx context.Context, t *Table) error {
	if !i.cfg.Archive.Enabled {
		return nil
	}
	history := outbox.HistoryName(i.cfg.Archive.Table, t.Table)
	err := i.probe(ctx, t.Table, probe{"DELETE", "DELETE FROM " + t.From() + " WHERE 1=0", "rows are copied to no history, since they could not be removed"})
	if err != nil {
		return err
	}
	check := "history of " + t.String()
	statement, err := followStatement(ctx, i.conn, i.cfg.Archive, t)
	switch {
	case errors.Is(err, ErrHistory):
		i.report.Fail(check, err.Error(), "see what it says")
		return nil
	case err != nil:
		return err
	case statement != "":
		i.report.Warn(check, history.String()+" is missing or lacks a column: the first pass of the archive needs CREATE and ALTER on it", oneLine(statement)+"  -- or outbox-relay init")
		if strings.HasPrefix(statement, "CREATE") {
			return nil
		}
	}
	if statement == "" {
		both, err := readShapes(ctx, i.conn, t.Table, history)
		if err != nil {
			return err
		}
		if _, err := both.copied(); err != nil {
			i.report.Fail(check, err.Error(), "see what it says")
		} else {
			i.report.OK(check, history.String()+" takes every column")
		}
	}
	h := &Table{Table: history}
	for _, p := range []probe{
		{"SELECT", "SELECT " + mysql.Identifier(archivedAt) + " FROM " + h.From() + " LIMIT 0", "archived messages are not found again"},
		{"INSERT", "INSERT INTO " + h.From() + " (" + mysql.Identifier(archivedAt) + ") SELECT NOW(6) FROM DUAL WHERE 1=0", "no row can be archived"},
	} {
		if err := i.probe(ctx, h.Table, p); err != nil {
			return err
		}
	}
	return nil
}

// completeAll is complete with the history, where rows are archived and nothing else is missing: a history copies the
// table's columns as they are.
func (t *Table) completeAll(ctx context.Context, conn *sql.Conn, cfg Config) ([]string, error) {
	statements := t.complete(cfg.Columns)
	if !cfg.Archive.Enabled || len(statements) > 0 {
		return statements, nil
	}
	statement, err := followStatement(ctx, conn, cfg.Archive, t)
	if err != nil || statement == "" {
		return statements, err
	}
	return append(statements, statement+";"), nil
}

// grantArchive returns what archiving needs beyond marking. The last ones are for messages resend.
func grantArchive(a Archive, account string, tables []outbox.Table, printOnly bool) []string {
	if !a.Enabled {
		return nil
	}
	var statements []string
	for _, table := range tables {
		name, history := outbox.QuoteTable(table), outbox.QuoteTable(outbox.HistoryName(a.Table, table))
		statements = append(statements,
			"GRANT DELETE ON "+name+" TO "+account+";",
			"GRANT SELECT, INSERT, CREATE, ALTER ON "+history+" TO "+account+";")
		if printOnly {
			statements = append(statements,
				"GRANT INSERT ON "+name+" TO "+account+";  -- optional: for outbox-relay messages resend",
				"GRANT DELETE, UPDATE ON "+history+" TO "+account+";  -- optional: for outbox-relay messages resend")
		}
	}
	return statements
}
