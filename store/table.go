package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/outbox-relay/outbox"
)

// Table is one local message table as the server describes it.
type Table struct {
	outbox.Table
	// Unsigned tells how to read the 64 bits of an outbox.Row's ID.
	Unsigned bool
	// Which of the optional columns the table has.
	HasKey, HasHeaders, HasLastError, HasTrace, HasBodyRef bool

	cols map[string]column // by the meaning's field name in outbox.Columns
	// primary is the name of the unique index on the id alone, due of the one on (status, next_retry_time); "" when
	// there is none.
	primary, due string
	byMsg        string // an index that begins with msg_id, the unique one if there is one
	engine       string
	msgIDUnique  bool
}

// column is one column that the relay uses, under the name that the server gives it.
type column struct {
	name    string
	kind    string // DATA_TYPE, lower case
	charset string // "" for a column that is no text
	collate string
	length  int64 // CHARACTER_MAXIMUM_LENGTH
}

// binary reports whether the column holds bytes without a character set.
func (c column) binary() bool {
	return c.charset == "" && (strings.HasSuffix(c.kind, "binary") || strings.HasSuffix(c.kind, "blob"))
}

func (c column) integer() bool {
	switch c.kind {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return true
	}
	return false
}

func (c column) temporal() bool { return c.kind == "datetime" || c.kind == "timestamp" }

// need says what a column must be to serve.
type need struct {
	meaning  string
	name     string
	optional bool
	fits     func(column) bool
	type_    string // the type to tell when it does not fit
}

// needs lists the columns by their meaning.
func needs(c outbox.Columns) []need {
	anything := func(column) bool { return true }
	return []need{
		{meaning: "id", name: c.ID, fits: column.integer, type_: "BIGINT"},
		{meaning: "msg_id", name: c.MsgID, fits: anything},
		{meaning: "topic", name: c.Topic, fits: anything},
		{meaning: "content", name: c.Content, fits: anything},
		{meaning: "status", name: c.Status, fits: column.integer, type_: "TINYINT"},
		{meaning: "retry_count", name: c.RetryCount, fits: column.integer, type_: "INT"},
		{meaning: "next_retry_time", name: c.NextRetryTime, fits: column.temporal, type_: "DATETIME"},
		{meaning: "create_time", name: c.CreateTime, fits: column.temporal, type_: "DATETIME"},
		{meaning: "update_time", name: c.UpdateTime, fits: column.temporal, type_: "DATETIME"},
		{meaning: "key", name: c.Key, optional: true, fits: anything},
		{meaning: "headers", name: c.Headers, optional: true, fits: anything},
		{meaning: "last_error", name: c.LastError, optional: true, fits: anything},
		{meaning: "trace", name: c.Trace, optional: true, fits: anything},
		{meaning: "body_ref", name: c.BodyRef, optional: true, fits: anything},
	}
}

// col returns the quoted name of the column with a meaning.
func (t *Table) col(meaning string) string { return identifier(t.cols[meaning].name) }

func (t *Table) has(meaning string) bool { _, ok := t.cols[meaning]; return ok }

// from returns the quoted table, for a FROM or an UPDATE.
func (t *Table) from() string { return identifier(t.Database) + "." + identifier(t.Name) }

// byID and byDue are the index hints: stale statistics must never turn a batch into a scan (or a lock) of the table.
func (t *Table) byID() string { return hint(t.primary) }

func (t *Table) byDue() string { return hint(t.due) }

func (t *Table) byMsgID() string { return hint(t.byMsg) }

func hint(index string) string {
	if index == "" {
		return ""
	}
	return " FORCE INDEX (" + identifier(index) + ")"
}

// formatID renders the 64 bits of an id as the table's column means them.
func (t *Table) formatID(id uint64) string {
	if t.Unsigned {
		return strconv.FormatUint(id, 10)
	}
	return strconv.FormatInt(int64(id), 10) //nolint:gosec // the same 64 bits, read as the column's type
}

// parseID reads an id as the server prints it.
func (t *Table) parseID(text string) (uint64, error) {
	if t.Unsigned {
		return strconv.ParseUint(text, 10, 64)
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return uint64(id), err //nolint:gosec // the same 64 bits
}

// msgID quotes a msg_id for comparing it with the column.
func (t *Table) msgID(id string) string { return t.text("msg_id", id) }

// text quotes a text for comparing it with a column, so that the column's index can serve and the comparison never fails.
// The server turns a literal into the column's character set by itself, but refuses the whole statement when that lacks
// one of the characters; converted by hand they become question marks, and match nothing.
func (t *Table) text(meaning, value string) string {
	c := t.cols[meaning]
	switch {
	case c.binary():
		return binaryLiteral(value)
	case c.charset == "" || c.charset == "utf8mb4" || ascii(value):
		return literal(value)
	}
	return "CONVERT(" + literal(value) + " USING " + c.charset + ") COLLATE " + c.collate
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// resolve finds the tables that the patterns name, and looks at their columns and indexes.
func resolve(ctx context.Context, conn *sql.Conn, srv server, cfg Config) ([]Table, error) {
	patterns := make([]pattern, 0, len(cfg.Tables))
	for _, text := range cfg.Tables {
		p, err := parsePattern(text, srv.foldNames)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	databases, err := column1(ctx, conn, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1")
	if err != nil {
		return nil, err
	}
	names := map[string][]string{} // the tables of each database that some pattern names
	for _, database := range databases {
		if !slices.ContainsFunc(patterns, func(p pattern) bool { return p.database.match(database) }) {
			continue
		}
		names[database], err = column1(ctx, conn, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+
			literal(database)+" AND TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED') ORDER BY 1")
		if err != nil {
			return nil, err
		}
	}
	var tables []Table
	for _, database := range databases {
		wanted := slices.DeleteFunc(slices.Clone(names[database]), func(table string) bool {
			return !named(patterns, database, table)
		})
		if wanted, err = withoutHistories(ctx, conn, cfg.Archive, patterns, srv, database, wanted); err != nil {
			return nil, err
		}
		looked, err := lookAt(ctx, conn, srv, cfg.Columns, database, wanted)
		if err != nil {
			return nil, err
		}
		tables = append(tables, looked...)
	}
	for _, p := range patterns {
		if !slices.ContainsFunc(tables, func(t Table) bool { return p.database.match(t.Database) && p.table.match(t.Name) }) {
			return nil, noMatch(p, databases, names)
		}
	}
	return tables, nil
}

// noMatch tells what a pattern missed and what may have been meant.
func noMatch(p pattern, databases []string, names map[string][]string) error {
	var near []string
	for database, tables := range names {
		if p.database.match(database) {
			for _, table := range nearest(p.table.literal, tables) {
				near = append(near, database+"."+table)
			}
		}
	}
	if len(names) == 0 || len(near) == 0 {
		near = append(near, nearest(p.database.literal, databases)...)
	}
	slices.Sort(near)
	hint := "create it with `outbox-relay init`, correct `source.tables`, or grant the user a privilege on it (tables without one are invisible)"
	if len(near) > 0 {
		hint = "did you mean " + strings.Join(slices.Compact(near), ", ") + "? Otherwise " + hint
	}
	return schemaError(ErrGone, "no table matches %s; %s", p.text, hint)
}

// lookAt reads the columns and indexes of some tables of one database.
func lookAt(ctx context.Context, conn *sql.Conn, srv server, columns outbox.Columns, database string, names []string) ([]Table, error) {
	tables := make([]Table, 0, len(names))
	for some := range slices.Chunk(names, 200) {
		where := " WHERE TABLE_SCHEMA = " + literal(database) + " AND TABLE_NAME IN (" + literals(some) + ")"
		found, err := readColumns(ctx, conn, where)
		if err != nil {
			return nil, err
		}
		indexes, err := readIndexes(ctx, conn, srv, where)
		if err != nil {
			return nil, err
		}
		engines, err := pairs(ctx, conn, "SELECT TABLE_NAME, COALESCE(ENGINE,'') FROM information_schema.TABLES"+where)
		if err != nil {
			return nil, err
		}
		for _, name := range some {
			t := Table{Table: outbox.Table{Database: database, Name: name}, engine: engines[name]}
			if err := t.take(columns, found[name]); err != nil {
				return nil, err
			}
			t.chooseIndexes(indexes[name])
			tables = append(tables, t)
		}
	}
	return tables, nil
}

// take picks the columns that the relay uses and checks that they can serve.
func (t *Table) take(columns outbox.Columns, found []foundColumn) error {
	t.cols = map[string]column{}
	for _, n := range needs(columns) {
		i := slices.IndexFunc(found, func(c foundColumn) bool { return n.name != "" && strings.EqualFold(c.name, n.name) })
		if i < 0 {
			if n.optional {
				continue
			}
			return t.lacks(n, found)
		}
		if !n.fits(found[i].column) {
			return schemaError(ErrSchema, "column %s of %s is %s and can't serve as %s; change it to %s",
				found[i].name, t, strings.ToUpper(found[i].kind), n.meaning, n.type_)
		}
		t.cols[n.meaning] = found[i].column
		if n.meaning == "id" {
			t.Unsigned = found[i].unsigned
		}
	}
	t.HasKey, t.HasHeaders, t.HasLastError, t.HasTrace = t.has("key"), t.has("headers"), t.has("last_error"), t.has("trace")
	t.HasBodyRef = t.has("body_ref")
	return nil
}

func (t *Table) lacks(n need, found []foundColumn) error {
	names := make([]string, len(found))
	for i, c := range found {
		names[i] = c.name
	}
	hint := ""
	if near := nearest(n.name, names); len(near) > 0 {
		hint = fmt.Sprintf(" (did you mean %s?)", strings.Join(near, ", "))
	}
	if len(found) == 0 {
		hint = " (the user sees no column at all: grant SELECT)"
	}
	return schemaError(ErrSchema, "%s has no column %s%s; add it, or name the right one in `source.columns.%s`", t, n.name, hint, n.meaning)
}
