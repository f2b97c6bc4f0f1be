package assemble

import (
	"context"
	"errors"
	"fmt"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// readColumns lists the columns of a table in their order, invisible ones included. None means that there is no such
// table, or that the user may see nothing of it: see tableGone.
func readColumns(ctx context.Context, server Server, t outbox.Table) ([]mysql.Column, error) {
	columns, err := server.Columns(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("read columns of %s: %w", t, err)
	}
	return columns, nil
}

// tableGone reports why a table shows no columns: it is gone, or the user may not see it. The latter is an error.
func tableGone(ctx context.Context, server Server, t outbox.Table) (bool, error) {
	_, err := server.Query(ctx, "SELECT 1 FROM "+mysql.Identifier(t.Database)+"."+mysql.Identifier(t.Name)+" LIMIT 0")
	switch mysql.Code(err) {
	case mysql.CodeNoSuchTable, mysql.CodeUnknownDatabase:
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", t, err)
	}
	// It was made between the two statements.
	return false, fmt.Errorf("look at %s: %w", t, errRetry)
}

// errRetry means that the same is to be queried once more.
var errRetry = errors.New("the table changed meanwhile")

// fits reports whether a column of the binlog can be this one: by its type, and by the length where the type has one.
func fits(c *mysql.Column, tp byte, meta uint16) bool {
	if tp == gomysql.MYSQL_TYPE_STRING {
		// Types that share CHAR's number carry their own in the upper byte of meta. For long CHARs two bits of it
		// belong to the length.
		if real := byte(meta >> 8); real == gomysql.MYSQL_TYPE_ENUM || real == gomysql.MYSQL_TYPE_SET {
			tp = real
		}
	}
	want, known := binlogTypes[c.Type]
	if !known {
		return true
	}
	if !slices.Contains(want, tp) {
		return false
	}
	switch tp {
	case gomysql.MYSQL_TYPE_VARCHAR, gomysql.MYSQL_TYPE_VAR_STRING:
		return c.Octets == int64(meta)
	case gomysql.MYSQL_TYPE_BLOB:
		size, ok := blobSizes[c.Type]
		return !ok || size == meta
	}
	return true
}

// binlogTypes are the types in the binlog of each type in information_schema. A geometry or a type that is not listed
// fits anything: such a column is none of ours.
var binlogTypes = map[string][]byte{
	"tinyint": {gomysql.MYSQL_TYPE_TINY}, "smallint": {gomysql.MYSQL_TYPE_SHORT}, "mediumint": {gomysql.MYSQL_TYPE_INT24},
	"int": {gomysql.MYSQL_TYPE_LONG}, "bigint": {gomysql.MYSQL_TYPE_LONGLONG}, "float": {gomysql.MYSQL_TYPE_FLOAT},
	"double": {gomysql.MYSQL_TYPE_DOUBLE}, "decimal": {gomysql.MYSQL_TYPE_NEWDECIMAL}, "year": {gomysql.MYSQL_TYPE_YEAR},
	"bit": {gomysql.MYSQL_TYPE_BIT}, "date": {gomysql.MYSQL_TYPE_DATE, gomysql.MYSQL_TYPE_NEWDATE},
	"time":      {gomysql.MYSQL_TYPE_TIME, gomysql.MYSQL_TYPE_TIME2},
	"datetime":  {gomysql.MYSQL_TYPE_DATETIME, gomysql.MYSQL_TYPE_DATETIME2},
	"timestamp": {gomysql.MYSQL_TYPE_TIMESTAMP, gomysql.MYSQL_TYPE_TIMESTAMP2},
	"varchar":   {gomysql.MYSQL_TYPE_VARCHAR, gomysql.MYSQL_TYPE_VAR_STRING, mariadbVarcharCompressed},
	"varbinary": {gomysql.MYSQL_TYPE_VARCHAR, gomysql.MYSQL_TYPE_VAR_STRING, mariadbVarcharCompressed},
	"char":      {gomysql.MYSQL_TYPE_STRING}, "binary": {gomysql.MYSQL_TYPE_STRING},
	"enum": {gomysql.MYSQL_TYPE_ENUM}, "set": {gomysql.MYSQL_TYPE_SET},
	"json":     {gomysql.MYSQL_TYPE_JSON, gomysql.MYSQL_TYPE_BLOB},
	"tinytext": {gomysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed}, "text": {gomysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed},
	"mediumtext": {gomysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed}, "longtext": {gomysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed},
	"tinyblob": {gomysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed}, "blob": {gomysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed},
	"mediumblob": {gomysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed}, "longblob": {gomysql.MYSQL_TYPE_BLOB, mariadbBlobCompressed},
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
