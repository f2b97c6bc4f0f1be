package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/outbox-relay/internal/nearest"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Table is one local message table as the server describes it.
type Table struct {
	outbox.Table
	// Unsigned tells how to read the 64 bits of an outbox.Row's ID.
	Unsigned bool
	// Which of the optional columns the table has.
	HasKey, HasHeaders, HasLastError, HasTrace, HasBodyRef bool
	// Engine is the storage engine, as the server names it.
	Engine string

	cols map[string]mysql.Column // by their meaning, words.Column*
	indexes
}

// indexes are the names of the indexes that statements go by.
type indexes struct {
	// primary is the unique index on the id alone, due the one on (status, next_retry_time); "" when there is none.
	primary, due string
	byMsg        string // an index that begins with msg_id, the unique one if there is one
	msgIDUnique  bool
}

// need says what a column must be to serve.
type need struct {
	meaning  string
	name     string
	optional bool
	fits     func(mysql.Column) bool
	type_    string // the type to tell when it does not fit
}

// needs lists the columns by their meaning.
func needs(c outbox.Columns) []need {
	anything := func(mysql.Column) bool { return true }
	return []need{
		{meaning: words.ColumnID, name: c.ID, fits: mysql.Column.Integer, type_: "BIGINT"},
		{meaning: words.ColumnMsgID, name: c.MsgID, fits: anything},
		{meaning: words.ColumnTopic, name: c.Topic, fits: anything},
		{meaning: words.ColumnContent, name: c.Content, fits: anything},
		{meaning: words.ColumnStatus, name: c.Status, fits: mysql.Column.Integer, type_: "TINYINT"},
		{meaning: words.ColumnRetryCount, name: c.RetryCount, fits: mysql.Column.Integer, type_: "INT"},
		{meaning: words.ColumnNextRetryTime, name: c.NextRetryTime, fits: mysql.Column.Temporal, type_: "DATETIME"},
		{meaning: words.ColumnCreateTime, name: c.CreateTime, fits: mysql.Column.Temporal, type_: "DATETIME"},
		{meaning: words.ColumnUpdateTime, name: c.UpdateTime, fits: mysql.Column.Temporal, type_: "DATETIME"},
		{meaning: words.ColumnKey, name: c.Key, optional: true, fits: anything},
		{meaning: words.ColumnHeaders, name: c.Headers, optional: true, fits: anything},
		{meaning: words.ColumnLastError, name: c.LastError, optional: true, fits: anything},
		{meaning: words.ColumnTrace, name: c.Trace, optional: true, fits: anything},
		{meaning: words.ColumnBodyRef, name: c.BodyRef, optional: true, fits: anything},
	}
}

// Col returns the quoted name of the column with a meaning, one of package words.
func (t *Table) Col(meaning string) string { return mysql.Identifier(t.cols[meaning].Name) }

// Column describes the column with a meaning, as the server does; the zero Column when the table lacks it.
func (t *Table) Column(meaning string) mysql.Column { return t.cols[meaning] }

func (t *Table) has(meaning string) bool { _, ok := t.cols[meaning]; return ok }

// From returns the quoted table, for a FROM or an UPDATE.
func (t *Table) From() string { return mysql.Identifier(t.Database) + "." + mysql.Identifier(t.Name) }

// ByID returns the hint of the unique index on the id, "" when there is none. The hints are there because stale statistics must
// never turn a batch into a scan (or a lock) of the table.
func (t *Table) ByID() string { return hint(t.primary) }

// ByDue returns the hint of the index on (status, next_retry_time), "" when there is none.
func (t *Table) ByDue() string { return hint(t.due) }

// ByMsgID returns the hint of an index that begins with msg_id, "" when there is none.
func (t *Table) ByMsgID() string { return hint(t.byMsg) }

func hint(index string) string {
	if index == "" {
		return ""
	}
	return " FORCE INDEX (" + mysql.Identifier(index) + ")"
}

// FormatID renders the 64 bits of an id as the table's column means them.
func (t *Table) FormatID(id uint64) string {
	if t.Unsigned {
		return strconv.FormatUint(id, 10)
	}
	return strconv.FormatInt(int64(id), 10) //nolint:gosec // the same 64 bits, read as the column's type
}

// ParseID reads an id as the server prints it.
func (t *Table) ParseID(text string) (uint64, error) {
	if t.Unsigned {
		return strconv.ParseUint(text, 10, 64)
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return uint64(id), err //nolint:gosec // the same 64 bits
}

// QuoteMsgID quotes a msg_id for comparing it with the column.
func (t *Table) QuoteMsgID(id string) string { return t.text(words.ColumnMsgID, id) }

// text quotes a text for comparing it with a column, so that the column's index can serve and the comparison never fails.
// The server turns a literal into the column's character set by itself, but refuses the whole statement when that lacks
// one of the characters; converted by hand they become question marks, and match nothing.
func (t *Table) text(meaning, value string) string {
	c := t.cols[meaning]
	switch {
	case c.Binary():
		return mysql.BinaryLiteral(value)
	case c.Charset == "" || c.Charset == "utf8mb4" || ascii(value):
		return mysql.Literal(value)
	}
	return "CONVERT(" + mysql.Literal(value) + " USING " + c.Charset + ") COLLATE " + c.Collation
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// resolve finds the tables that the patterns name, and looks at their columns and indexes.
func resolve(ctx context.Context, conn *sql.Conn, srv mysql.Server, cfg Config) ([]Table, error) {
	patterns, err := mysql.ParsePatterns(cfg.Tables)
	if err != nil {
		return nil, err
	}
	patterns = patterns.FoldCase(srv.FoldNames).Excluding(cfg.History)
	there, err := mysql.ListTables(ctx, conn, patterns)
	if err != nil {
		return nil, err
	}
	histories := there.Where(func(t outbox.Table) bool { return patterns.Names(t) && patterns.IsHistory(t) })
	if err := checkHistories(ctx, conn, histories); err != nil {
		return nil, err
	}
	wanted := there.Where(patterns.Match)
	for _, p := range patterns.All() {
		if !slices.ContainsFunc(wanted, func(t outbox.Table) bool { return p.Match(t, srv.FoldNames) }) {
			return nil, noMatch(p, there.Near(p, srv.FoldNames))
		}
	}
	var tables []Table
	for _, database := range there.Databases {
		var names []string
		for _, t := range wanted {
			if t.Database == database {
				names = append(names, t.Name)
			}
		}
		looked, err := lookAt(ctx, conn, srv, cfg.Columns, database, names)
		if err != nil {
			return nil, err
		}
		tables = append(tables, looked...)
	}
	return tables, nil
}

// noMatch says what a pattern missed and what may have been meant.
func noMatch(p mysql.Pattern, near []string) error {
	hint := "create it with `outbox-relay init`, correct `source.tables`, or grant the user a privilege on it (tables without one are invisible)"
	if len(near) > 0 {
		hint = "did you mean " + strings.Join(near, ", ") + "? Otherwise " + hint
	}
	return schemaError(ErrGone, "no table matches %s; %s", p, hint)
}

// lookAt reads the columns and indexes of some tables of one database.
func lookAt(ctx context.Context, conn *sql.Conn, srv mysql.Server, columns outbox.Columns, database string, names []string) ([]Table, error) {
	tables := make([]Table, 0, len(names))
	for some := range slices.Chunk(names, 200) {
		shapes, err := mysql.ReadShapes(ctx, conn, srv, database, some)
		if err != nil {
			return nil, err
		}
		for _, name := range some {
			shape := shapes[name]
			t := Table{Table: outbox.Table{Database: database, Name: name}, Engine: shape.Engine}
			if err := t.take(columns, shape.Columns); err != nil {
				return nil, err
			}
			t.chooseIndexes(shape.Indexes)
			tables = append(tables, t)
		}
	}
	return tables, nil
}

// Describe looks at a table that has the columns of a message table, such as a history.
func (s *Store) Describe(ctx context.Context, conn *sql.Conn, table outbox.Table) (*Table, error) {
	looked, err := lookAt(ctx, conn, s.Server(), s.cfg.Columns, table.Database, []string{table.Name})
	if err != nil {
		return nil, err
	}
	return &looked[0], nil
}

// take picks the columns that the relay uses and checks that they can serve.
func (t *Table) take(columns outbox.Columns, found []mysql.Column) error {
	t.cols = map[string]mysql.Column{}
	for _, n := range needs(columns) {
		i := slices.IndexFunc(found, func(c mysql.Column) bool { return n.name != "" && strings.EqualFold(c.Name, n.name) })
		if i < 0 {
			if n.optional {
				continue
			}
			return t.lacks(n, found)
		}
		if !n.fits(found[i]) {
			return schemaError(ErrSchema, "column %s of %s is %s and can't serve as %s; change it to %s",
				found[i].Name, t, strings.ToUpper(found[i].Type), n.meaning, n.type_)
		}
		t.cols[n.meaning] = found[i]
	}
	t.Unsigned = t.cols[words.ColumnID].Unsigned()
	t.HasKey, t.HasHeaders, t.HasLastError, t.HasTrace = t.has(words.ColumnKey), t.has(words.ColumnHeaders), t.has(words.ColumnLastError), t.has(words.ColumnTrace)
	t.HasBodyRef = t.has(words.ColumnBodyRef)
	return nil
}

func (t *Table) lacks(n need, found []mysql.Column) error {
	names := make([]string, len(found))
	for i, c := range found {
		names[i] = c.Name
	}
	hint := ""
	if near := nearest.Names(n.name, names); len(near) > 0 {
		hint = fmt.Sprintf(" (did you mean %s?)", strings.Join(near, ", "))
	}
	if len(found) == 0 {
		hint = " (the user sees no column at all: grant SELECT)"
	}
	return schemaError(ErrSchema, "%s has no column %s%s; add it, or name the right one in `source.columns.%s`", t, n.name, hint, n.meaning)
}

// chooseIndexes finds the indexes by their columns: their names are the user's business.
func (t *Table) chooseIndexes(indexes []mysql.Index) {
	id, msgID := t.cols[words.ColumnID].Name, t.cols[words.ColumnMsgID].Name
	due := []string{t.cols[words.ColumnStatus].Name, t.cols[words.ColumnNextRetryTime].Name}
	for _, index := range indexes {
		unique := index.Unique && index.Is(msgID)
		t.msgIDUnique = t.msgIDUnique || unique
		if !index.Usable {
			continue
		}
		if index.Begins(msgID) && (t.byMsg == "" || unique) {
			t.byMsg = index.Name
		}
		if index.Unique && index.Is(id) && (t.primary == "" || index.Name == "PRIMARY") {
			t.primary = index.Name
		}
		// The shorter index is the better one: behind it InnoDB keeps the primary key, so that rows come in id order.
		if index.Begins(due...) && (t.due == "" || index.Is(due...)) {
			t.due = index.Name
		}
	}
}
