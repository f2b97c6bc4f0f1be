package lean

import (
	"encoding/binary"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// reader turns the bytes of one wanted column into a value.
type reader struct {
	slot int // where the column's place is noted; -1 for a column that the table doesn't have
	kind Kind
	tp   byte
	// digits behind the point: of a second, or of a decimal.
	digits    int
	precision int
	// pad is the length of a BINARY(n): the binlog leaves out the zero bytes at its end.
	pad int
	// text converts from the column's charset to UTF-8, nil when there is nothing to convert.
	text *charset
}

// newReader tells how to read a wanted column, or why it can't be read with certainty.
func newReader(tm *replication.TableMapEvent, col Column) (reader, error) {
	tp, meta := realType(tm.ColumnType[col.Index], tm.ColumnMeta[col.Index])
	r := reader{tp: tp, kind: Bytes}
	switch tp {
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_LONG,
		mysql.MYSQL_TYPE_LONGLONG:
		r.kind = Int
		if unsignedColumn(tm, col) {
			r.kind = Uint
		}
	case mysql.MYSQL_TYPE_YEAR:
		r.kind = Uint
	case mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_TIME:
	case mysql.MYSQL_TYPE_DATETIME2, mysql.MYSQL_TYPE_TIMESTAMP2, mysql.MYSQL_TYPE_TIME2:
		r.digits = int(meta)
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		r.precision, r.digits = int(meta>>8), int(meta&0xff)
	case mysql.MYSQL_TYPE_JSON:
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_BLOB:
		return r, r.useText(tm, col, meta)
	default:
		return reader{}, unsupported("a wanted column of type %d", tp)
	}
	return r, nil
}

// useText finds the column's charset.
func (r *reader) useText(tm *replication.TableMapEvent, col Column, meta uint16) error {
	switch col.DataType {
	case "uuid", "inet4", "inet6":
		return unsupported("a wanted column of MariaDB's type %s", col.DataType)
	}
	name, err := charsetOf(tm, col)
	if err != nil {
		return err
	}
	if r.text, err = findCharset(name); err != nil {
		return err
	}
	if r.tp == mysql.MYSQL_TYPE_STRING && name == charsetBinary {
		r.pad = int(meta)
	}
	return nil
}

// signed reads an integer column.
func (r *reader) signed(b []byte) int64 {
	switch len(b) {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 3:
		return int64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24) >> 8)
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case 8:
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// unsigned reads an unsigned integer column or a year.
func (r *reader) unsigned(b []byte) uint64 {
	if r.tp == mysql.MYSQL_TYPE_YEAR {
		if len(b) == 0 || b[0] == 0 {
			return 0
		}
		return 1900 + uint64(b[0])
	}
	n := uint64(0)
	for _, c := range slices.Backward(b) {
		n = n<<8 | uint64(c)
	}
	return n
}

// estimate returns how many bytes the text of a value of n bytes will have: at least, but for conversions, which may
// make the text longer.
func (r *reader) estimate(n int) int {
	switch r.tp {
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_BLOB:
		if r.text != nil {
			return n + n/2 // two-byte charsets become three bytes
		}
		return max(n, r.pad)
	case mysql.MYSQL_TYPE_JSON:
		return n + n/4 + 16 // blanks and quotes make up for the offsets
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		return r.precision + 3
	}
	return len("0000-00-00 00:00:00.000000")
}

// appendText appends the value as the server would send it.
func (r *reader) appendText(dst, b []byte) ([]byte, error) {
	switch r.tp {
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_BLOB:
		if r.text != nil {
			return r.text.appendUTF8(dst, b)
		}
		dst = append(dst, b...)
		for n := len(b); n < r.pad; n++ {
			dst = append(dst, 0)
		}
		return dst, nil
	case mysql.MYSQL_TYPE_JSON:
		return appendJSON(dst, b)
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		return appendDecimal(dst, b, r.precision, r.digits)
	}
	return appendTemporal(dst, b, r.tp, r.digits)
}

// unsignedColumn tells whether an integer column is unsigned: by the TABLE_MAP, else by what the caller knows. The bits
// of the map count numeric columns only, the first one is the highest.
func unsignedColumn(tm *replication.TableMapEvent, col Column) bool {
	if len(tm.SignednessBitmap) == 0 {
		return col.Unsigned
	}
	n := 0
	for i := range col.Index {
		if tm.IsNumericColumn(i) {
			n++
		}
	}
	if n/8 >= len(tm.SignednessBitmap) {
		return col.Unsigned
	}
	return tm.SignednessBitmap[n/8]&(0x80>>(n%8)) != 0
}

// charsetOf names the charset of a character column: by the collation in the TABLE_MAP, else by what the caller knows.
func charsetOf(tm *replication.TableMapEvent, col Column) (string, error) {
	if id, ok := collationOf(tm, col.Index); ok {
		if name, ok := CollationCharset(id); ok {
			return name, nil
		}
		if col.Charset == "" {
			return "", unsupported("collation %d", id)
		}
	}
	if col.Charset != "" {
		return col.Charset, nil
	}
	switch col.DataType {
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return charsetBinary, nil
	}
	return "", unsupported("a text column of unknown charset")
}

// hasCollation reports whether a column counts in the lists of collations. MySQL counts VECTOR among the character
// columns, which go-mysql 1.16.0 doesn't know: its CollationMap is shifted behind one.
func hasCollation(tm *replication.TableMapEvent, column int) bool {
	return tm.IsCharacterColumn(column) || tm.ColumnType[column] == mysql.MYSQL_TYPE_VECTOR
}

// collationOf returns the collation that the TABLE_MAP tells for a character column.
func collationOf(tm *replication.TableMapEvent, column int) (id uint64, ok bool) {
	n := uint64(0)
	for i := range column {
		if hasCollation(tm, i) {
			n++
		}
	}
	if len(tm.DefaultCharset) > 0 {
		pairs := tm.DefaultCharset[1:]
		for ; len(pairs) >= 2; pairs = pairs[2:] {
			if pairs[0] == n {
				return pairs[1], true
			}
		}
		return tm.DefaultCharset[0], true
	}
	if n < uint64(len(tm.ColumnCharset)) {
		return tm.ColumnCharset[n], true
	}
	return 0, false
}
