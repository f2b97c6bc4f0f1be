package outbox

import (
	"math/bits"
	"strconv"
	"strings"
)

// variant says which parts an INSERT has beyond those that every message needs.
type variant uint8

const (
	withKey variant = 1 << iota
	withHeaders
	withTrace
	withBodyRef
	withDue
	sessionTime // next_retry_time is a TIMESTAMP: its text is in the session's time zone
	once        // a message of the same msg_id may be there
	variants
)

// What LastInsertId returns when the row was not inserted. No row has such an id.
const (
	markDuplicate = -1
	markConflict  = -2
)

// insert returns the INSERT up to VALUES.
func (c *core) insert(v variant) string {
	cols := &c.cfg.Columns
	names := []string{cols.MsgID, cols.Topic, cols.Content, cols.Status, cols.RetryCount, cols.CreateTime, cols.UpdateTime}
	for _, extra := range []struct {
		bit  variant
		name string
	}{{withKey, cols.Key}, {withHeaders, cols.Headers}, {withTrace, cols.Trace}, {withBodyRef, cols.BodyRef}, {withDue, cols.NextRetryTime}} {
		if v&extra.bit != 0 {
			names = append(names, extra.name)
		}
	}
	for i, name := range names {
		names[i] = quote(name)
	}
	return "INSERT INTO " + QuoteTable(c.cfg.Table) + " (" + strings.Join(names, ", ") + ") VALUES "
}

// tuple returns one row of VALUES. The times are the server's. A due time is given in UTC and turned into the time zone in which the
// relay, whose sessions keep the server's, will compare it with NOW(); the writer's session may have another one.
func (c *core) tuple(v variant) string {
	optional := bits.OnesCount8(uint8(v & (withKey | withHeaders | withTrace | withBodyRef)))
	text := "(?, ?, ?, " + strconv.Itoa(c.cfg.Pending) + ", 0, NOW(), NOW()" + strings.Repeat(", ?", optional)
	if v&withDue != 0 {
		zone := "@@GLOBAL.time_zone"
		if v&sessionTime != 0 {
			zone = "@@SESSION.time_zone"
		}
		text += ", CONVERT_TZ(?, '+00:00', " + zone + ")"
	}
	return text + ")"
}

// onDuplicate returns what makes a repeated message harmless, and tells it. The row in the way is set to what it is, which changes
// nothing, not even a column with ON UPDATE, and leaves nothing in the binlog. The number of affected rows can't tell, since it is
// 1 for an untouched row, too, where the connection asks for found rows (clientFoundRows); so LAST_INSERT_ID gets a value
// that no row can have. INSERT IGNORE would also swallow what does not fit. repeated is an expression: is the row in the way
// the same message, and not another one with the same value in another unique key?
func (c *core) onDuplicate(repeated string) string {
	id := quote(c.cfg.Columns.MsgID)
	// The comparison with 0 is never true. Without it (IS NULL) MySQL leaves the call out.
	return " ON DUPLICATE KEY UPDATE " + id + " = IF(LAST_INSERT_ID(IF(" + id + " = " + repeated + ", " +
		strconv.Itoa(markDuplicate) + ", " + strconv.Itoa(markConflict) + ")) = 0, " + id + ", " + id + ")"
}

// statement returns the INSERT of one row.
func (c *core) statement(v variant) string {
	text := c.insert(v) + c.tuple(v)
	if v&once != 0 {
		text += c.onDuplicate("?")
	}
	return text
}

// batch returns the INSERT of n rows. Which of them were there already is asked afterwards.
func (c *core) batch(v variant, n int) string {
	tuple := c.tuple(v)
	text := c.insert(v) + strings.Repeat(tuple+", ", n-1) + tuple
	if v&once != 0 {
		text += c.onDuplicate("''")
	}
	return text
}

// find returns the SELECT of those rows that are among n msg_ids. What this transaction has inserted it sees in any case, and it
// locks nothing.
func (c *core) find(n int) string {
	id, msgID := quote(c.cfg.Columns.ID), quote(c.cfg.Columns.MsgID)
	return "SELECT " + id + ", " + msgID + ", @@SESSION.auto_increment_increment FROM " + QuoteTable(c.cfg.Table) +
		" WHERE " + msgID + " IN (" + strings.Repeat("?, ", n-1) + "?)"
}
