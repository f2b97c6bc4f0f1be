package mysql

import (
	"context"
	"database/sql"
	"strings"
)

// Column is a column as information_schema describes it.
type Column struct {
	Name string
	// Type is DATA_TYPE and FullType COLUMN_TYPE, both in lower case.
	Type, FullType string
	// Charset and Collation are "" for a column that is no text.
	Charset, Collation string
	// Chars and Octets are the longest value's.
	Chars, Octets int64
	Nullable      bool
	// Default is COLUMN_DEFAULT as the server prints it; see Literal.
	Default sql.NullString
	// Extra is EXTRA in lower case, such as "auto_increment".
	Extra string
	// Expression is what a generated column is computed from, "" for any other.
	Expression string
}

// Unsigned reports whether an integer has no sign.
func (c Column) Unsigned() bool { return strings.Contains(c.FullType, "unsigned") }

// Binary reports whether the column holds bytes without a character set.
func (c Column) Binary() bool {
	return c.Charset == "" && (strings.HasSuffix(c.Type, "binary") || strings.HasSuffix(c.Type, "blob"))
}

// Integer reports whether the column is one of the integers.
func (c Column) Integer() bool {
	switch c.Type {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return true
	}
	return false
}

// Temporal reports whether the column is a DATETIME or a TIMESTAMP.
func (c Column) Temporal() bool { return c.Type == "datetime" || c.Type == "timestamp" }

// DefaultKind is what a row has in a column that its INSERT does not name.
type DefaultKind uint8

// The kinds of defaults.
const (
	NoDefault       DefaultKind = iota // NULL, or none
	LiteralDefault                     // a literal
	ComputedDefault                    // the value of an expression
)

// Literal understands the default. MySQL prints a literal bare and marks an expression in EXTRA; MariaDB prints SQL: a quoted
// literal, a number, NULL, or an expression.
func (c Column) Literal() (text string, kind DefaultKind) {
	text = c.Default.String
	switch {
	case !c.Default.Valid, strings.EqualFold(text, "NULL"):
		return "", NoDefault
	case strings.Contains(c.Extra, "default_generated"):
		return "", ComputedDefault
	case len(text) >= 2 && text[0] == '\'' && text[len(text)-1] == '\'':
		return strings.ReplaceAll(text[1:len(text)-1], "''", "'"), LiteralDefault
	case strings.Contains(text, "("), strings.HasPrefix(strings.ToUpper(text), "CURRENT_TIMESTAMP"):
		return "", ComputedDefault
	}
	return text, LiteralDefault
}

// ReadColumns returns the columns of some tables of one database, by the table's name and in their order; invisible ones are
// among them. A table without columns does not exist, or the user may see nothing of it.
func ReadColumns(ctx context.Context, q Querier, database string, tables ...string) (map[string][]Column, error) {
	rows, err := q.QueryContext(ctx, "SELECT TABLE_NAME, COLUMN_NAME, LOWER(DATA_TYPE), LOWER(COLUMN_TYPE), COALESCE(CHARACTER_SET_NAME,''),"+
		" COALESCE(COLLATION_NAME,''), COALESCE(CHARACTER_MAXIMUM_LENGTH,0), COALESCE(CHARACTER_OCTET_LENGTH,0), IS_NULLABLE='YES',"+
		" COLUMN_DEFAULT, LOWER(EXTRA), COALESCE(GENERATION_EXPRESSION,'')"+
		" FROM information_schema.COLUMNS"+ofTables(database, tables)+" ORDER BY TABLE_NAME, ORDINAL_POSITION")
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	found := map[string][]Column{}
	for rows.Next() {
		var table string
		var c Column
		if err := rows.Scan(&table, &c.Name, &c.Type, &c.FullType, &c.Charset, &c.Collation, &c.Chars, &c.Octets, &c.Nullable,
			&c.Default, &c.Extra, &c.Expression); err != nil {
			return nil, err
		}
		found[table] = append(found[table], c)
	}
	return found, rows.Err()
}

// ofTables is the condition that names tables of a database.
func ofTables(database string, tables []string) string {
	return " WHERE TABLE_SCHEMA = " + Literal(database) + " AND TABLE_NAME IN (" + Literals(tables) + ")"
}
