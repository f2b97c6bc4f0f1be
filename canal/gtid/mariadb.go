package gtid

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"example.com/outbox-relay/canal/position"
)

// mariadbSet holds the last transaction of each domain.
type mariadbSet map[uint32]mysql.MariadbGTID

// Add moves the domains that the text names to the transactions that it names.
func (s mariadbSet) Add(text string) error {
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		if one == "" {
			continue
		}
		gtid, err := mysql.ParseMariadbGTID(one)
		if err != nil {
			return fmt.Errorf("gtid position %q: %w", text, err)
		}
		s[gtid.DomainID] = *gtid
	}
	return nil
}

// AddOne moves the transaction's domain to it.
func (s mariadbSet) AddOne(id ID) {
	if id.flavor == position.MariaDB {
		s[id.domain.DomainID] = id.domain
	}
}

// Clear empties the set.
func (s mariadbSet) Clear() { clear(s) }

// Contains reports whether every domain of the other has got at least as far here.
func (s mariadbSet) Contains(other Set) bool {
	o, ok := other.(mariadbSet)
	if !ok {
		return false
	}
	for domain, gtid := range o {
		mine, ok := s[domain]
		if !ok || mine.SequenceNumber < gtid.SequenceNumber {
			return false
		}
	}
	return true
}

// Empty reports whether no domain is known.
func (s mariadbSet) Empty() bool { return len(s) == 0 }

// String returns MariaDB's notation, domains in order.
func (s mariadbSet) String() string {
	domains := make([]uint32, 0, len(s))
	for domain := range s {
		domains = append(domains, domain)
	}
	slices.Sort(domains)
	var b strings.Builder
	for i, domain := range domains {
		if i > 0 {
			b.WriteByte(',')
		}
		gtid := s[domain]
		b.WriteString(strconv.FormatUint(uint64(gtid.DomainID), 10))
		b.WriteByte('-')
		b.WriteString(strconv.FormatUint(uint64(gtid.ServerID), 10))
		b.WriteByte('-')
		b.WriteString(strconv.FormatUint(gtid.SequenceNumber, 10))
	}
	return b.String()
}

// Native returns the position as go-mysql wants it.
func (s mariadbSet) Native() mysql.GTIDSet {
	set := &mysql.MariadbGTIDSet{Sets: make(map[uint32]*mysql.MariadbGTID, len(s))}
	for domain, gtid := range s {
		set.Sets[domain] = gtid.Clone()
	}
	return set
}

// Precedes reports whether a MariaDB's transaction, in its notation, is just the one that follows the set in its
// domain.
func Precedes(set Set, text string) bool {
	one, err := mysql.ParseMariadbGTID(text)
	before, ok := set.(mariadbSet)
	return err == nil && ok && before[one.DomainID].SequenceNumber+1 == one.SequenceNumber
}
