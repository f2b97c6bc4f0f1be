package rewind

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"example.com/outbox-relay/canal/position"
)

var (
	place    = regexp.MustCompile(`^([^:,/\s]+\.\d+):(\d+)$`)
	mysqlSet = regexp.MustCompile(`^[0-9a-fA-F-]{32,36}(:[A-Za-z_][A-Za-z0-9_]*)?(:\d+(-\d+)?)+`)
	mariaSet = regexp.MustCompile(`^\d+-\d+-\d+(,\d+-\d+-\d+)*$`)
)

// Target is a position as an operator names it: a place in the binlog, or a set of GTIDs.
type Target struct {
	File string
	Pos  uint64
	GTID string
}

// ParseTarget reads FILE:POS or a GTID set.
func ParseTarget(text string) (Target, error) {
	text = strings.Join(strings.Fields(text), "")
	if m := place.FindStringSubmatch(text); m != nil {
		pos, err := strconv.ParseUint(m[2], 10, 64)
		if err != nil || pos < 4 {
			return Target{}, fmt.Errorf("%q is no place in a binlog: offsets begin at 4", text)
		}
		return Target{File: m[1], Pos: pos}, nil
	}
	if mysqlSet.MatchString(text) || mariaSet.MatchString(text) {
		return Target{GTID: text}, nil
	}
	return Target{}, fmt.Errorf("%q is no position: give FILE:POS as binlog.000012:4567, or a GTID set", text)
}

// On returns the position on the server whose present end is given.
func (t Target) On(end position.Position) position.Position {
	return position.Position{Server: end.Server, Flavor: end.Flavor, File: t.File, Pos: t.Pos, GTID: t.GTID}
}
