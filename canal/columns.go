package canal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/outbox"
)

// column is what information_schema says about one column.
type column struct {
	name     string
	dataType string
	fullType string
	charset  string
	octets   uint64
	nullable bool
	// fallback is the column's default as the server prints it; hasFallback is false when it is NULL or there is none.
	fallback    string
	hasFallback bool
	// computed: the default is an expression, whose value the binlog doesn't tell when the image leaves the column out.
	computed bool
}

// readColumns lists the columns of a table in their order, invisible ones included. None means that there is no such
// table, or that the user may see nothing of it: see tableGone.
func readColumns(ctx context.Context, q querier, t outbox.Table) ([]column, error) {
	result, err := q.query(ctx, "SELECT column_name, data_type, column_type, character_set_name, character_octet_length,"+
		" is_nullable, column_default, extra FROM information_schema.columns WHERE table_schema = "+quote(t.Database)+
		" AND table_name = "+quote(t.Name)+" ORDER BY ordinal_position")
	if err != nil {
		return nil, fmt.Errorf("read columns of %s: %w", t, err)
	}
	columns := make([]column, 0, result.RowNumber())
	for i := range result.RowNumber() {
		c := column{
			name: text(result, i, 0), dataType: strings.ToLower(text(result, i, 1)),
			fullType: strings.ToLower(text(result, i, 2)), charset: text(result, i, 3),
			nullable: strings.EqualFold(text(result, i, 5), "YES"),
		}
		if octets := text(result, i, 4); octets != "" {
			if c.octets, err = strconv.ParseUint(octets, 10, 64); err != nil {
				return nil, fmt.Errorf("read columns of %s: octet length %q: %w", t, octets, err)
			}
		}
		null, err := result.IsNull(i, 6)
		if err != nil {
			return nil, fmt.Errorf("read columns of %s: %w", t, err)
		}
		c.setFallback(text(result, i, 6), !null, text(result, i, 7))
		columns = append(columns, c)
	}
	return columns, nil
}

// setFallback understands the default. MySQL prints a literal bare and marks an expression in the column extra;
// MariaDB prints SQL: a quoted literal, a number, NULL, or an expression.
func (c *column) setFallback(text string, has bool, extra string) {
	switch {
	case !has, strings.EqualFold(text, "NULL"):
	case strings.Contains(strings.ToUpper(extra), "DEFAULT_GENERATED"):
		c.computed = true
	case len(text) >= 2 && text[0] == '\'' && text[len(text)-1] == '\'':
		c.fallback, c.hasFallback = strings.ReplaceAll(text[1:len(text)-1], "''", "'"), true
	case strings.Contains(text, "("), strings.HasPrefix(strings.ToUpper(text), "CURRENT_TIMESTAMP"):
		c.computed = true
	default:
		c.fallback, c.hasFallback = text, true
	}
}

// value returns what a row that doesn't name the column has in it; ok is false when that can't be told.
func (c *column) value() (v lean.Value, ok bool) {
	switch {
	case c.computed:
		return lean.Value{}, false
	case c.hasFallback:
		if n, err := strconv.ParseInt(c.fallback, 10, 64); err == nil && c.integer() {
			return lean.Value{State: lean.Present, Kind: lean.Int, Int: n}, true
		}
		return lean.Value{State: lean.Present, Kind: lean.Bytes, Bytes: []byte(c.fallback)}, true
	case c.nullable:
		return lean.Value{State: lean.Null}, true
	case c.integer():
		return lean.Value{State: lean.Present, Kind: lean.Int}, true
	case c.charset != "":
		return lean.Value{State: lean.Present, Kind: lean.Bytes, Bytes: []byte{}}, true
	}
	return c.zeroTime()
}

// zeroTime is what a time that must not be NULL gets where the SQL mode allows to leave it out.
func (c *column) zeroTime() (lean.Value, bool) {
	zero := ""
	switch c.dataType {
	case "date":
		zero = "0000-00-00"
	case "datetime", "timestamp":
		zero = "0000-00-00 00:00:00"
		var digits int
		if _, err := fmt.Sscanf(c.fullType, c.dataType+"(%d)", &digits); err == nil && digits > 0 && digits <= 6 {
			zero += "." + strings.Repeat("0", digits)
		}
	default:
		return lean.Value{}, false
	}
	return lean.Value{State: lean.Present, Kind: lean.Bytes, Bytes: []byte(zero)}, true
}

func (c *column) integer() bool {
	switch c.dataType {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return true
	}
	return false
}

// tableGone tells why a table shows no columns: it is gone, or the user may not see it. The latter is an error.
func tableGone(ctx context.Context, q querier, t outbox.Table) (bool, error) {
	_, err := q.query(ctx, "SELECT 1 FROM "+identifier(t.Database)+"."+identifier(t.Name)+" LIMIT 0")
	switch serverCode(err) {
	case codeNoSuchTable, codeUnknownDatabase:
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", t, err)
	}
	// It was made between the two statements.
	return false, fmt.Errorf("look at %s: %w", t, errRetry)
}

// matchingTables lists the tables that the patterns name, as far as the user may see them.
func matchingTables(ctx context.Context, q querier, patterns Patterns) ([]outbox.Table, error) {
	result, err := q.query(ctx, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type LIKE '%BASE TABLE%'"+
		" ORDER BY table_schema, table_name")
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	var found []outbox.Table
	for i := range result.RowNumber() {
		if t := (outbox.Table{Database: text(result, i, 0), Name: text(result, i, 1)}); patterns.Match(t) {
			found = append(found, t)
		}
	}
	return found, nil
}

// errRetry asks for the same once more.
var errRetry = errors.New("the table changed meanwhile")

// identifier quotes a name for SQL.
func identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// fits reports whether a column of the binlog can be this one: by its type, and by the length where the type has one.
func (c *column) fits(tp byte, meta uint16) bool {
	if tp == mysql.MYSQL_TYPE_STRING {
		// Types that share CHAR's number carry their own in the upper byte of meta. For long CHARs two bits of it
		// belong to the length.
		if real := byte(meta >> 8); real == mysql.MYSQL_TYPE_ENUM || real == mysql.MYSQL_TYPE_SET {
			tp = real
		}
	}
	want, known := binlogTypes[c.dataType]
	if !known {
		return true
	}
	if !slices.Contains(want, tp) {
		return false
	}
	switch tp {
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING:
		return c.octets == uint64(meta)
	case mysql.MYSQL_TYPE_BLOB:
		size, ok := blobSizes[c.dataType]
		return !ok || size == meta
	}
	return true
}

// binlogTypes are the types in the binlog of each type in information_schema. A geometry or a type that is not listed
// fits anything: such a column is none of ours.
var binlogTypes = map[string][]byte{
	"tinyint": {mysql.MYSQL_TYPE_TINY}, "smallint": {mysql.MYSQL_TYPE_SHORT}, "mediumint": {mysql.MYSQL_TYPE_INT24},
	"int": {mysql.MYSQL_TYPE_LONG}, "bigint": {mysql.MYSQL_TYPE_LONGLONG}, "float": {mysql.MYSQL_TYPE_FLOAT},
	"double": {mysql.MYSQL_TYPE_DOUBLE}, "decimal": {mysql.MYSQL_TYPE_NEWDECIMAL}, "year": {mysql.MYSQL_TYPE_YEAR},
	"bit": {mysql.MYSQL_TYPE_BIT}, "date": {mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_NEWDATE},
	"time":      {mysql.MYSQL_TYPE_TIME, mysql.MYSQL_TYPE_TIME2},
	"datetime":  {mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_DATETIME2},
	"timestamp": {mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_TIMESTAMP2},
	"varchar":   {mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mariadbVarcharCompressed},
	"varbinary": {mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mariadbVarcharCompressed},
	"char":      {mysql.MYSQL_TYPE_STRING}, "binary": {mysql.MYSQL_TYPE_STRING},
	"enum": {mysql.MYSQL_TYPE_ENUM}, "set": {mysql.MYSQL_TYPE_SET},
	"json":     {mysql.MYSQL_TYPE_JSON, mysql.MYSQL_TYPE_BLOB},
	"tinytext": {mysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed}, "text": {mysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed},
	"mediumtext": {mysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed}, "longtext": {mysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed},
	"tinyblob": {mysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed}, "blob": {mysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed},
	"mediumblob": {mysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed}, "longblob": {mysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed},
}

// blobSizes are the bytes that hold the length of a blob's value.
var blobSizes = map[string]uint16{
	"tinytext": 1, "text": 2, "mediumtext": 3, "longtext": 4, "tinyblob": 1, "blob": 2, "mediumblob": 3, "longblob": 4,
}

// Types of MariaDB that go-mysql does not name.
const (
	mariadbBlobCompressed    = 140
	mariadbVarcharCompressed = 141
)

// sameShape reports whether two columns of a table look alike in the binlog: an image whose columns changed places among
// such columns can't be told from one whose columns did not.
func sameShape(tm *replication.TableMapEvent, a, b int) bool {
	if tm.ColumnType[a] != tm.ColumnType[b] || tm.ColumnMeta[a] != tm.ColumnMeta[b] {
		return false
	}
	null := func(i int) bool { return tm.NullBitmap[i>>3]&(1<<(i&7)) != 0 }
	return null(a) == null(b)
}
