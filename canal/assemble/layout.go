package assemble

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// tableID reads the id at the head of a TABLE_MAP or rows event.
func tableID(body []byte) (uint64, bool) {
	if len(body) < 8 {
		return 0, false
	}
	return uint64(binary.LittleEndian.Uint32(body)) | uint64(binary.LittleEndian.Uint16(body[4:]))<<32, true
}

// dummyTable reports whether a table id stands for no table: servers close a statement with such an event when none of
// its rows is to be logged.
func dummyTable(id uint64) bool { return id == 1<<48-1 || id == 1<<32-1 || id == 1<<24-1 }

// tableName reads database and table of a TABLE_MAP without decoding the rest.
func tableName(body []byte) (database, table []byte, ok bool) {
	rest := body
	for i, into := range []*[]byte{&database, &table} {
		skip := 0
		if i == 0 {
			skip = 8 // id and flags
		}
		if len(rest) < skip+1 {
			return nil, nil, false
		}
		n := int(rest[skip])
		if len(rest) < skip+1+n+1 {
			return nil, nil, false
		}
		*into = rest[skip+1 : skip+1+n]
		rest = rest[skip+1+n+1:]
	}
	return database, table, true
}

// mariadbGTID reads a MariaDB GTID event.
func mariadbGTID(ev *replication.BinlogEvent, body []byte) (gtid mysql.MariadbGTID, flags byte, ok bool) {
	if len(body) < 13 {
		return gtid, 0, false
	}
	return mysql.MariadbGTID{
		SequenceNumber: binary.LittleEndian.Uint64(body),
		DomainID:       binary.LittleEndian.Uint32(body[8:]),
		ServerID:       ev.Header.ServerID,
	}, body[12], true
}

// Flags of MariaDB's GTID event that go-mysql does not name.
const (
	mariadbStandalone = 1
	mariadbPreparedXA = 64
)

// loadStatement reads database and statement of an EXECUTE_LOAD_QUERY event, a LOAD DATA logged as a statement.
func loadStatement(body []byte) (database, query []byte, ok bool) {
	const fixed = 4 + 4 + 1 + 2 + 2 + 4 + 4 + 4 + 1
	if len(body) < fixed {
		return nil, nil, false
	}
	databaseLen, varsLen := int(body[8]), int(binary.LittleEndian.Uint16(body[11:]))
	if len(body) < fixed+varsLen+databaseLen+1 {
		return nil, nil, false
	}
	rest := body[fixed+varsLen:]
	return rest[:databaseLen], rest[databaseLen+1:], true
}
