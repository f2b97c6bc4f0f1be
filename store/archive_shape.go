package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"example.com/outbox-relay/outbox"
)

// archivedAt is the history's own column: when the row came. It is part of the primary key, so that an id that is given
// twice (after a TRUNCATE, or a restart of MySQL 5.7 with an empty table) and a message that was resent can be archived again.
const archivedAt = "archived_at"

// errFollow tells that the history lacks a column, or is missing itself.
var errFollow error = &Error{Op: "archive rows", kind: ErrHistory, text: "the history is missing or lacks a column that the table has; outbox-relay init makes it"}

// shapeColumn is what two columns must have in common for a value to go from one to the other unharmed.
type shapeColumn struct {
	name, columnType, kind, charset string
	length                          int64
	nullable, generated, hasDefault bool
	system                          bool // begin and end of a row's life, the server's own
}

// shapes are the columns of a table and of its history.
type shapes struct {
	table, history outbox.Table
	source, target []shapeColumn
}

func readShapes(ctx context.Context, q querier, table, history outbox.Table) (shapes, error) {
	s := shapes{table: table, history: history}
	rows, err := q.QueryContext(ctx, "SELECT TABLE_NAME, COLUMN_NAME, LOWER(COLUMN_TYPE), LOWER(DATA_TYPE), COALESCE(CHARACTER_SET_NAME,''),"+
		" COALESCE(CHARACTER_OCTET_LENGTH,0), IS_NULLABLE='YES', COALESCE(GENERATION_EXPRESSION,''), COLUMN_DEFAULT IS NOT NULL OR EXTRA LIKE '%auto_increment%'"+
		" FROM information_schema.COLUMNS WHERE TABLE_SCHEMA="+literal(table.Database)+" AND TABLE_NAME IN ("+literals([]string{table.Name, history.Name})+
		") ORDER BY TABLE_NAME, ORDINAL_POSITION")
	if err != nil {
		return s, err
	}
	defer closeRows(rows)
	for rows.Next() {
		var name, expression string
		var c shapeColumn
		if err := rows.Scan(&name, &c.name, &c.columnType, &c.kind, &c.charset, &c.length, &c.nullable, &expression, &c.hasDefault); err != nil {
			return s, err
		}
		c.generated = expression != ""
		c.system = expression == "ROW START" || expression == "ROW END"
		if strings.EqualFold(name, history.Name) {
			s.target = append(s.target, c)
		} else {
			s.source = append(s.source, c)
		}
	}
	return s, rows.Err()
}

func find(columns []shapeColumn, name string) (shapeColumn, bool) {
	for _, c := range columns {
		if strings.EqualFold(c.name, name) {
			return c, true
		}
	}
	return shapeColumn{}, false
}

// copied returns the columns that go from the table to the history, errFollow when the history lacks some, and an ErrHistory
// when a value could come to harm.
func (s shapes) copied() ([]string, error) {
	var names []string
	if err := s.taken(); err != nil {
		return nil, err
	}
	if _, ok := find(s.target, archivedAt); !ok {
		return nil, errFollow
	}
	for _, c := range s.source {
		if c.system {
			continue
		}
		h, ok := find(s.target, c.name)
		if !ok {
			return nil, errFollow
		}
		if h.generated {
			continue
		}
		if why := c.harm(h); why != "" {
			return nil, s.refuse("column %s %s; run: ALTER TABLE %s MODIFY COLUMN %s with the definition that SHOW CREATE TABLE %s tells",
				c.name, why, outbox.QuoteTable(s.history), identifier(c.name), outbox.QuoteTable(s.table))
		}
		names = append(names, c.name)
	}
	for _, h := range s.target {
		_, shared := find(s.source, h.name)
		if !shared && !h.nullable && !h.hasDefault && !h.generated && !strings.EqualFold(h.name, archivedAt) {
			return nil, s.refuse("column %s of the history is not in the table (renamed or dropped there?), takes no NULL and has no default; let it take NULL: ALTER TABLE %s MODIFY COLUMN %s %s NULL",
				h.name, outbox.QuoteTable(s.history), identifier(h.name), h.columnType)
		}
	}
	return names, nil
}

// taken refuses a table that uses the name of the history's own column.
func (s shapes) taken() error {
	if _, taken := find(s.source, archivedAt); taken {
		return s.refuse("the table has a column %s itself, which is what the history calls the time of archiving; rename it", archivedAt)
	}
	return nil
}

func (s shapes) refuse(format string, args ...any) error {
	return &Error{
		Op: "archive rows of " + s.table.String(), kind: ErrHistory,
		text: "nothing is moved to " + s.history.String() + ": " + fmt.Sprintf(format, args...),
	}
}

// widths orders the types that can hold all of what an earlier one holds.
var widths = map[string]int{
	"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 5,
}

// harm says why a value of c could not be kept by h as it is, "" when it can.
func (c shapeColumn) harm(h shapeColumn) string {
	if c.nullable && !h.nullable {
		return "may be NULL, and the history's may not"
	}
	unsigned := func(c shapeColumn) bool { return strings.Contains(c.columnType, "unsigned") }
	switch {
	case c.columnType == h.columnType && c.charset == h.charset:
		return ""
	case widths[c.kind] > 0 && widths[c.kind] <= widths[h.kind] && unsigned(c) == unsigned(h):
		return ""
	case textual(c.kind) && textual(h.kind) && c.charset != "" && c.charset == h.charset && c.length <= h.length:
		return ""
	}
	told := func(c shapeColumn) string { return strings.TrimSpace(c.columnType + " " + c.charset) }
	return fmt.Sprintf("is %s, and the history's is %s", told(c), told(h))
}

func textual(kind string) bool { return kind == "varchar" || strings.HasSuffix(kind, "text") }

// named reports whether some pattern names the table.
func named(patterns []pattern, database, table string) bool {
	for _, p := range patterns {
		if p.database.match(database) && p.table.match(table) {
			return true
		}
	}
	return false
}

// withoutHistories leaves out the tables that are the history of another one that the patterns name. One of them that is
// no history by its columns is a mistake that would keep messages from being sent, so it is an error.
func withoutHistories(ctx context.Context, conn *sql.Conn, a Archive, patterns []pattern, srv server, database string, tables []string) ([]string, error) {
	if !a.Enabled {
		return tables, nil
	}
	var kept, left []string
	for _, table := range tables {
		base, ok := outbox.HistoryBase(a.Table, table, srv.foldNames)
		if ok && named(patterns, database, base) {
			left = append(left, table)
		} else {
			kept = append(kept, table)
		}
	}
	if len(left) == 0 {
		return kept, nil
	}
	found, err := column1(ctx, conn, "SELECT TABLE_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA="+literal(database)+
		" AND TABLE_NAME IN ("+literals(left)+") AND COLUMN_NAME="+literal(archivedAt))
	if err != nil {
		return nil, err
	}
	for _, table := range left {
		if !contains(found, table) {
			name := outbox.Table{Database: database, Name: table}
			return nil, schemaError(ErrSchema, "%s is what archive.table calls a history, and source.tables matches it too, but it has no column %s: choose another archive.table if it is a message table, else run ALTER TABLE %s ADD COLUMN %s %s",
				name, archivedAt, outbox.QuoteTable(name), archivedAt, archivedAtType)
		}
	}
	return kept, nil
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}
