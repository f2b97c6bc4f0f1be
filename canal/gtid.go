package canal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/uuid"

	"example.com/outbox-relay/canal/position"
)

// gtidSet is a set of transactions: MySQL's executed set, or MariaDB's position with one transaction per domain.
//
// go-mysql's MariaDB set is not used: it takes MariaDB's notation apart as well, but logs through the default logger.
type gtidSet interface {
	// Add puts the members of a set in the server's notation into it.
	Add(text string) error
	// Contains reports whether every transaction of the other set, of the same flavor, is in this one.
	Contains(other gtidSet) bool
	Empty() bool
	String() string
}

// parseGTIDs reads a set in the server's own notation.
func parseGTIDs(flavor, text string) (gtidSet, error) {
	var set gtidSet
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

// mysqlKey is a source of transactions: a server's uuid, and a tag that may be empty.
type mysqlKey struct {
	sid uuid.UUID
	tag string
}

// mysqlSet holds intervals per source, sorted and apart from each other. The end of an interval is not in it.
type mysqlSet map[mysqlKey]mysql.IntervalSlice

// addOne adds a single transaction. In the ordinary case, the next number of the same source, nothing is allocated.
func (s mysqlSet) addOne(key mysqlKey, gno int64) {
	list := s[key]
	if n := len(list); n > 0 {
		switch last := &list[n-1]; {
		case last.Stop == gno:
			last.Stop++
			return
		case gno >= last.Start && gno < last.Stop:
			return
		case gno > last.Stop:
			s[key] = append(list, mysql.Interval{Start: gno, Stop: gno + 1})
			return
		}
	}
	s[key] = append(list, mysql.Interval{Start: gno, Stop: gno + 1}).Normalize()
}

// Add puts the members of a set in MySQL's notation into it, tags included.
func (s mysqlSet) Add(text string) error {
	if s.addSingle(text) {
		return nil
	}
	parsed, err := mysql.ParseMysqlGTIDSet(cleanGTIDs(text))
	if err != nil {
		return fmt.Errorf("gtid set %q: %w", text, err)
	}
	set, ok := parsed.(*mysql.MysqlGTIDSet)
	if !ok {
		return fmt.Errorf("gtid set %q: unexpected type %T", text, parsed)
	}
	for sid, tags := range *set {
		for tag, intervals := range tags {
			key := mysqlKey{sid: sid, tag: tag.String()}
			if len(intervals) == 1 && intervals[0].Stop == intervals[0].Start+1 {
				s.addOne(key, intervals[0].Start)
				continue
			}
			s[key] = append(s[key], intervals...).Normalize()
		}
	}
	return nil
}

// addSingle adds a set of one transaction without a tag, uuid:number, which most transactions' Ends are.
func (s mysqlSet) addSingle(text string) bool {
	const uuidLen = 36
	if len(text) < uuidLen+2 || text[uuidLen] != ':' {
		return false
	}
	gno, err := strconv.ParseInt(text[uuidLen+1:], 10, 64)
	if err != nil || gno <= 0 {
		return false
	}
	sid, err := uuid.Parse(text[:uuidLen])
	if err != nil {
		return false
	}
	s.addOne(mysqlKey{sid: sid}, gno)
	return true
}

// Contains reports whether the other set is within this one.
func (s mysqlSet) Contains(other gtidSet) bool {
	o, ok := other.(mysqlSet)
	if !ok {
		return false
	}
	for key, intervals := range o {
		if len(intervals) > 0 && !s[key].Contain(intervals) {
			return false
		}
	}
	return true
}

// Empty reports whether nothing is in the set.
func (s mysqlSet) Empty() bool { return len(s) == 0 }

// String returns MySQL's notation, sources sorted, the untagged transactions of a source first.
func (s mysqlSet) String() string {
	keys := make([]mysqlKey, 0, len(s))
	for key := range s {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b mysqlKey) int {
		if c := slices.Compare(a.sid[:], b.sid[:]); c != 0 {
			return c
		}
		return strings.Compare(a.tag, b.tag)
	})
	var b strings.Builder
	for i, key := range keys {
		switch {
		case i == 0:
			b.WriteString(key.sid.String())
		case keys[i-1].sid != key.sid:
			b.WriteByte(',')
			b.WriteString(key.sid.String())
		}
		if key.tag != "" {
			b.WriteByte(':')
			b.WriteString(key.tag)
		}
		for _, in := range s[key] {
			b.WriteByte(':')
			b.WriteString(strconv.FormatInt(in.Start, 10))
			if in.Stop > in.Start+1 {
				b.WriteByte('-')
				b.WriteString(strconv.FormatInt(in.Stop-1, 10))
			}
		}
	}
	return b.String()
}

// native returns the set as go-mysql wants it for a dump command.
func (s mysqlSet) native() *mysql.MysqlGTIDSet {
	set := mysql.NewMysqlGTIDSet()
	for key, intervals := range s {
		if set[key.sid] == nil {
			set[key.sid] = make(map[mysql.Tag]mysql.IntervalSlice)
		}
		set[key.sid][mysql.NewTag(key.tag)] = slices.Clone(intervals)
	}
	return &set
}

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

// Contains reports whether every domain of the other has got at least as far here.
func (s mariadbSet) Contains(other gtidSet) bool {
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

// native returns the position as go-mysql wants it for a dump command.
func (s mariadbSet) native() *mysql.MariadbGTIDSet {
	set := &mysql.MariadbGTIDSet{Sets: make(map[uint32]*mysql.MariadbGTID, len(s))}
	for domain, gtid := range s {
		set.Sets[domain] = gtid.Clone()
	}
	return set
}

// Covers reports whether a set of GTIDs holds all of another.
func Covers(flavor, set, other string) (bool, error) {
	whole, err := parseGTIDs(flavor, set)
	if err != nil {
		return false, err
	}
	part, err := parseGTIDs(flavor, other)
	if err != nil {
		return false, err
	}
	return whole.Contains(part), nil
}
