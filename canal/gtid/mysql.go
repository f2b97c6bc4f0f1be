package gtid

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/uuid"

	"example.com/outbox-relay/canal/position"
)

// mysqlKey is a source of transactions: a server's uuid, and a tag that may be empty.
type mysqlKey struct {
	sid uuid.UUID
	tag string
}

// mysqlSet holds intervals per source, sorted and apart from each other. The end of an interval is not in it.
type mysqlSet map[mysqlKey]mysql.IntervalSlice

// AddOne puts a MySQL's transaction into the set.
func (s mysqlSet) AddOne(id ID) {
	if id.flavor == position.MySQL {
		s.addOne(id.key, id.number)
	}
}

// Clear empties the set.
func (s mysqlSet) Clear() { clear(s) }

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
	parsed, err := mysql.ParseMysqlGTIDSet(Clean(text))
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
func (s mysqlSet) Contains(other Set) bool {
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

// Native returns the set as go-mysql wants it.
func (s mysqlSet) Native() mysql.GTIDSet {
	set := mysql.NewMysqlGTIDSet()
	for key, intervals := range s {
		if set[key.sid] == nil {
			set[key.sid] = make(map[mysql.Tag]mysql.IntervalSlice)
		}
		set[key.sid][mysql.NewTag(key.tag)] = slices.Clone(intervals)
	}
	return &set
}
