// Package gtid holds sets of GTIDs, the names that servers give to transactions: MySQL's executed set, and MariaDB's
// position with one transaction per domain.
//
// It compares and adds up sets in the servers' own notation and queries no server. What a set means for a stream is
// canal's business.
package gtid

import (
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/uuid"

	"example.com/outbox-relay/canal/position"
)

// Set is a set of transactions of one flavor of server. It is used by one goroutine.
//
// go-mysql's MariaDB set is not used: it reads MariaDB's notation as well, but logs through the default logger.
type Set interface {
	// Add puts the members of a set in the server's notation into it. An error means that the text is no such set.
	Add(text string) error
	// AddOne puts one transaction into it. An ID of the other flavor, or none, changes nothing.
	AddOne(id ID)
	// Clear empties the set.
	Clear()
	// Contains reports whether every transaction of the other set, of the same flavor, is in this one.
	Contains(other Set) bool
	Empty() bool
	// String returns the set in the server's notation.
	String() string
	// Native returns a copy as go-mysql wants it for a dump command.
	Native() mysql.GTIDSet
}

// ID names one transaction. The zero ID names none: where GTIDs are off, transactions have no name.
type ID struct {
	flavor string
	// Of a MySQL.
	key    mysqlKey
	number int64
	// Of a MariaDB.
	domain mysql.MariadbGTID
}

// MySQL returns the ID of the number-th transaction of a server and a tag, which may be "".
func MySQL(server uuid.UUID, tag string, number int64) ID {
	return ID{flavor: position.MySQL, key: mysqlKey{sid: server, tag: tag}, number: number}
}

// MariaDB returns the ID of a MariaDB's transaction.
func MariaDB(id mysql.MariadbGTID) ID { return ID{flavor: position.MariaDB, domain: id} }

// Parse reads a set in the notation of a flavor, one of position.MySQL and position.MariaDB. "" is the empty set.
func Parse(flavor, text string) (Set, error) {
	var set Set
	switch flavor {
	case position.MySQL:
		set = mysqlSet{}
	case position.MariaDB:
		set = mariadbSet{}
	default:
		return nil, fmt.Errorf("unknown flavor %q of a position", flavor)
	}
	if err := set.Add(text); err != nil {
		return nil, err
	}
	return set, nil
}

// Covers reports whether a set, in the notation of the flavor, holds all of another.
func Covers(flavor, set, other string) (bool, error) {
	whole, err := Parse(flavor, set)
	if err != nil {
		return false, err
	}
	part, err := Parse(flavor, other)
	if err != nil {
		return false, err
	}
	return whole.Contains(part), nil
}

// Clean removes the line breaks that MySQL puts into long sets.
func Clean(text string) string {
	if !strings.ContainsAny(text, "\n\r ") {
		return text
	}
	return strings.NewReplacer("\n", "", "\r", "", " ", "").Replace(text)
}
