package history

import (
	"context"
	"fmt"
	"strings"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// errFollow tells that the history lacks a column, or is missing itself.
var errFollow error = &mysql.Error{Op: "archive rows", Class: ErrHistory, Text: "the history is missing or lacks a column that the table has; outbox-relay init makes it"}

// shapes are the columns of a table and of its history.
type shapes struct {
	table, history outbox.Table
	source, target []mysql.Column
}

func readShapes(ctx context.Context, q mysql.Querier, table, history outbox.Table) (shapes, error) {
	s := shapes{table: table, history: history}
	columns, err := mysql.ReadColumns(ctx, q, table.Database, table.Name, history.Name)
	for name, found := range columns {
		if strings.EqualFold(name, history.Name) {
			s.target = found
		} else {
			s.source = found
		}
	}
	return s, err
}

// generated reports whether the server computes a column's values.
func generated(c mysql.Column) bool { return c.Expression != "" }

// system reports whether a column is the begin or the end of a row's life, the server's own.
func system(c mysql.Column) bool { return c.Expression == "ROW START" || c.Expression == "ROW END" }

// optional reports whether a row may be written without naming the column.
func optional(c mysql.Column) bool {
	return c.Nullable || c.Default.Valid || strings.Contains(c.Extra, "auto_increment") || generated(c)
}

func find(columns []mysql.Column, name string) (mysql.Column, bool) {
	for _, c := range columns {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return mysql.Column{}, false
}

// copied returns the columns that go from the table to the history, errFollow when the history lacks some, and an ErrHistory
// when a value could come to harm.
func (s shapes) copied() ([]string, error) {
	var names []string
	if err := s.taken(); err != nil {
		return nil, err
	}
	if _, ok := find(s.target, store.ArchivedAt); !ok {
		return nil, errFollow
	}
	for _, c := range s.source {
		if system(c) {
			continue
		}
		h, ok := find(s.target, c.Name)
		if !ok {
			return nil, errFollow
		}
		if generated(h) {
			continue
		}
		if why := harm(c, h); why != "" {
			return nil, s.refuse("column %s %s; run: ALTER TABLE %s MODIFY COLUMN %s with the definition that SHOW CREATE TABLE %s tells",
				c.Name, why, outbox.QuoteTable(s.history), mysql.Identifier(c.Name), outbox.QuoteTable(s.table))
		}
		names = append(names, c.Name)
	}
	for _, h := range s.target {
		_, shared := find(s.source, h.Name)
		if !shared && !optional(h) && !strings.EqualFold(h.Name, store.ArchivedAt) {
			return nil, s.refuse("column %s of the history is not in the table (renamed or dropped there?), takes no NULL and has no default; let it take NULL: ALTER TABLE %s MODIFY COLUMN %s %s NULL",
				h.Name, outbox.QuoteTable(s.history), mysql.Identifier(h.Name), h.FullType)
		}
	}
	return names, nil
}

// taken refuses a table that uses the name of the history's own column.
func (s shapes) taken() error {
	if _, taken := find(s.source, store.ArchivedAt); taken {
		return s.refuse("the table has a column %s itself, which is what the history calls the time of archiving; rename it", store.ArchivedAt)
	}
	return nil
}

func (s shapes) refuse(format string, args ...any) error {
	return &mysql.Error{
		Op: "archive rows of " + s.table.String(), Class: ErrHistory,
		Text: "nothing is moved to " + s.history.String() + ": " + fmt.Sprintf(format, args...),
	}
}

// widths orders the types that can hold all of what an earlier one holds.
var widths = map[string]int{
	"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 5,
}

// harm says why a value of c could not be kept by h as it is, "" when it can.
func harm(c, h mysql.Column) string {
	if c.Nullable && !h.Nullable {
		return "may be NULL, and the history's may not"
	}
	switch {
	case c.FullType == h.FullType && c.Charset == h.Charset:
		return ""
	case widths[c.Type] > 0 && widths[c.Type] <= widths[h.Type] && c.Unsigned() == h.Unsigned():
		return ""
	case textual(c.Type) && textual(h.Type) && c.Charset != "" && c.Charset == h.Charset && c.Octets <= h.Octets:
		return ""
	}
	kind := func(c mysql.Column) string { return strings.TrimSpace(c.FullType + " " + c.Charset) }
	return fmt.Sprintf("is %s, and the history's is %s", kind(c), kind(h))
}

func textual(kind string) bool { return kind == "varchar" || strings.HasSuffix(kind, "text") }
