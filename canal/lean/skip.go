package lean

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// MariaDB's COMPRESSED columns. go-mysql does not read their metadata, so what it tells about the columns behind them is
// shifted: a table that has one can't be walked.
const (
	typeBlobCompressed    = 140
	typeVarcharCompressed = 141
)

// step is how to get over one column: either size bytes, or prefix bytes that hold the length and then that many.
type step struct {
	prefix uint8
	size   int
	slot   int // where to note the column's place; -1 for a column that nobody wants
}

// realType undoes what MySQL does to fit CHAR, ENUM and SET in one type with two bytes of metadata: the real type is in
// the upper byte, of which two bits belong to the length of a CHAR of more than 255 bytes.
func realType(tp byte, meta uint16) (byte, uint16) {
	if tp != mysql.MYSQL_TYPE_STRING || meta < 256 {
		return tp, meta
	}
	upper, lower := byte(meta>>8), meta&0xff
	if upper&0x30 != 0x30 {
		return upper | 0x30, lower | uint16(upper&0x30^0x30)<<4
	}
	return upper, lower
}

// newStep tells how to get over a column of the given type.
func newStep(tp byte, meta uint16) (step, error) {
	tp, meta = realType(tp, meta)
	if size, ok := fixedSize(tp, meta); ok {
		return step{size: size, slot: -1}, nil
	}
	switch tp {
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING:
		if meta < 256 {
			return step{prefix: 1, slot: -1}, nil
		}
		return step{prefix: 2, slot: -1}, nil
	case mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_GEOMETRY, mysql.MYSQL_TYPE_JSON, mysql.MYSQL_TYPE_VECTOR:
		if meta < 1 || meta > 4 {
			return step{}, malformed("type %d with %d bytes of length", tp, meta)
		}
		return step{prefix: uint8(meta), slot: -1}, nil
	case typeBlobCompressed, typeVarcharCompressed:
		return step{}, unsupported("a COMPRESSED column")
	}
	return stepOfMeta(tp, meta)
}

// fixedSize returns the bytes of a type that has the same in every table.
func fixedSize(tp byte, meta uint16) (int, bool) {
	switch tp {
	case mysql.MYSQL_TYPE_NULL:
		return 0, true
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_YEAR:
		return 1, true
	case mysql.MYSQL_TYPE_SHORT:
		return 2, true
	case mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_TIME:
		return 3, true
	case mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_TIMESTAMP:
		return 4, true
	case mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_DOUBLE, mysql.MYSQL_TYPE_DATETIME:
		return 8, true
	}
	return 0, false
}

// hidesFraction reports whether a type is one of the times without a fraction that MySQL 5.6 replaced.
func hidesFraction(tp byte) bool {
	return tp == mysql.MYSQL_TYPE_TIMESTAMP || tp == mysql.MYSQL_TYPE_DATETIME || tp == mysql.MYSQL_TYPE_TIME
}

// mayHideFractions reports whether such a type may have a fraction after all, which makes it longer: MariaDB before 10.1,
// and later ones with mysql56_temporal_format=OFF, store fractions in a format of their own and write these types to the
// binlog without a sign of it. Whether the event is MariaDB's shows in that GEOMETRY counts as a character type.
func mayHideFractions(tm *replication.TableMapEvent) bool {
	probe := *tm
	probe.ColumnType, probe.ColumnMeta = []byte{mysql.MYSQL_TYPE_GEOMETRY}, []uint16{4}
	return probe.IsCharacterColumn(0)
}

// stepOfMeta handles the types whose length is the same in every row, but told by the metadata.
func stepOfMeta(tp byte, meta uint16) (step, error) {
	size := 0
	switch tp {
	case mysql.MYSQL_TYPE_TIME2, mysql.MYSQL_TYPE_TIMESTAMP2, mysql.MYSQL_TYPE_DATETIME2:
		if meta > 6 {
			return step{}, malformed("type %d with %d fractional digits", tp, meta)
		}
		size = temporalSize(tp) + int(meta+1)/2
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		precision, scale := int(meta>>8), int(meta&0xff)
		if precision == 0 || scale > precision {
			return step{}, malformed("a DECIMAL(%d,%d)", precision, scale)
		}
		size = decimalSize(precision, scale)
	case mysql.MYSQL_TYPE_BIT:
		size = (int(meta>>8)*8 + int(meta&0xff) + 7) / 8
		if size < 1 || size > 8 {
			return step{}, malformed("a BIT of %d bytes", size)
		}
	case mysql.MYSQL_TYPE_ENUM:
		size = int(meta & 0xff)
		if size != 1 && size != 2 {
			return step{}, malformed("an ENUM of %d bytes", size)
		}
	case mysql.MYSQL_TYPE_SET:
		size = int(meta & 0xff)
		if size < 1 || size > 8 {
			return step{}, malformed("a SET of %d bytes", size)
		}
	default:
		return step{}, unsupported("column type %d", tp)
	}
	return step{size: size, slot: -1}, nil
}

// lengthAt reads the length that stands before a value. It fails when the event ends before.
func lengthAt(data []byte, pos int, prefix uint8) (length int, ok bool) {
	if len(data)-pos < int(prefix) {
		return 0, false
	}
	b := data[pos:]
	switch prefix {
	case 1:
		return int(b[0]), true
	case 2:
		return int(binary.LittleEndian.Uint16(b)), true
	case 3:
		return int(b[0]) | int(b[1])<<8 | int(b[2])<<16, true
	default:
		return int(binary.LittleEndian.Uint32(b)), true
	}
}
