// Package position is where in a binlog: plain values with no client library behind them.
//
// A Position is complete and can be saved; an End is the small step that one transaction adds to it. Comparing GTID
// sets needs the server's rules and is canal's business.
package position

import (
	"fmt"
	"strconv"
	"strings"
)

// Flavors of the server.
const (
	MySQL   = "mysql"
	MariaDB = "mariadb"
)

// Position says up to where a server's binlog has been dealt with.
type Position struct {
	// Server is the server_uuid (MySQL) or "server_id:domain_id" (MariaDB) of the server whose File and Pos these are.
	Server string
	Flavor string
	// GTID is the whole set of transactions dealt with, in the server's own notation; "" where the server has no GTIDs.
	GTID string
	File string
	Pos  uint64
}

// IsZero reports whether the position says nothing.
func (p Position) IsZero() bool { return p.File == "" && p.GTID == "" }

// String returns file:pos, for logs and the command line.
func (p Position) String() string { return p.File + ":" + strconv.FormatUint(p.Pos, 10) }

// End is a place between two transactions, where the stream may be resumed.
type End struct {
	File string
	Pos  uint64
	// GTID is the set of transactions that ended since the End before this one, "" when none had a GTID.
	GTID string
	// Executed, when not "", is the whole set up to here and replaces what was added up (told at the head of each binlog file).
	Executed string
}

// String returns file:pos.
func (e End) String() string { return e.File + ":" + strconv.FormatUint(e.Pos, 10) }

// Compare orders two places in the binlog of one server: negative when a is before b. Files are ordered by their
// number, not as text: binlog.1000000 follows binlog.999999. It fails when the base names differ, because then the
// files are of different servers or of a renamed log and no order is known.
func Compare(fileA string, posA uint64, fileB string, posB uint64) (int, error) {
	baseA, numA, err := splitFile(fileA)
	if err != nil {
		return 0, err
	}
	baseB, numB, err := splitFile(fileB)
	if err != nil {
		return 0, err
	}
	if baseA != baseB {
		return 0, fmt.Errorf("binlog files %s and %s have no order: their base names differ", fileA, fileB)
	}
	switch {
	case numA != numB:
		return cmpUint(numA, numB), nil
	default:
		return cmpUint(posA, posB), nil
	}
}

func splitFile(file string) (base string, number uint64, err error) {
	dot := strings.LastIndexByte(file, '.')
	if dot < 0 {
		return "", 0, fmt.Errorf("binlog file %q has no number", file)
	}
	number, err = strconv.ParseUint(file[dot+1:], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("binlog file %q has no number", file)
	}
	return file[:dot], number, nil
}

func cmpUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
