package history

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Inspect checks what archiving needs of one table: its history as it stands, and each privilege.
func (c Config) Inspect(ctx context.Context, i *store.Inspection, t *store.Table) error {
	if !c.Enabled {
		return nil
	}
	history := c.of(t.Table)
	err := i.Probe(ctx, t.Table, store.Probe{Privilege: "DELETE", Statement: "DELETE FROM " + t.From() + " WHERE 1=0", Without: "rows are copied to no history, since they could not be removed"})
	if err != nil {
		return err
	}
	check := "history of " + t.String()
	statement, err := c.followStatement(ctx, i.Conn, t)
	switch {
	case errors.Is(err, ErrHistory):
		i.Report.Fail(check, err.Error(), "see what it says")
		return nil
	case err != nil:
		return err
	case statement != "":
		i.Report.Warn(check, history.String()+" is missing or lacks a column: the first pass of the archive needs CREATE and ALTER on it", oneLine(statement)+"  -- or outbox-relay init")
		if strings.HasPrefix(statement, "CREATE") {
			return nil
		}
	}
	if statement == "" {
		both, err := readShapes(ctx, i.Conn, t.Table, history)
		if err != nil {
			return err
		}
		if _, err := both.copied(); err != nil {
			i.Report.Fail(check, err.Error(), "see what it says")
		} else {
			i.Report.OK(check, history.String()+" takes every column")
		}
	}
	h := &store.Table{Table: history}
	for _, p := range []store.Probe{
		{Privilege: "SELECT", Statement: "SELECT " + mysql.Identifier(store.ArchivedAt) + " FROM " + h.From() + " LIMIT 0", Without: "archived messages are not found again"},
		{Privilege: "INSERT", Statement: "INSERT INTO " + h.From() + " (" + mysql.Identifier(store.ArchivedAt) + ") SELECT NOW(6) FROM DUAL WHERE 1=0", Without: "no row can be archived"},
	} {
		if err := i.Probe(ctx, h.Table, p); err != nil {
			return err
		}
	}
	return nil
}

// Missing returns the statement that makes the history or adds what it lacks. A history copies the table's columns as they are,
// so there is none while the table itself is to be altered.
func (c Config) Missing(ctx context.Context, conn *sql.Conn, t *store.Table, altered bool) ([]string, error) {
	if !c.Enabled || altered {
		return nil, nil
	}
	statement, err := c.followStatement(ctx, conn, t)
	if err != nil || statement == "" {
		return nil, err
	}
	return []string{statement + ";"}, nil
}

// MissingOfNew returns nothing: the first pass makes the history of a new table.
func (c Config) MissingOfNew(outbox.Table) []string { return nil }

// Grants returns what archiving needs beyond marking. The last ones are for messages resend.
func (c Config) Grants(account string, tables []outbox.Table, printOnly bool) []string {
	if !c.Enabled {
		return nil
	}
	var statements []string
	for _, table := range tables {
		name, history := outbox.QuoteTable(table), outbox.QuoteTable(c.of(table))
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
