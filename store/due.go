package store

import (
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// This file knows all that next_retry_time can mean; the package comment has the table. What is written into the column, and
// each condition on it, is made here.

// nextRetry is the quoted column.
type nextRetry string

func (t *Table) nextRetry() nextRetry { return nextRetry(t.Col(words.ColumnNextRetryTime)) }

// value is what the column is set to, as SQL.
type value string

const (
	// noTime is the stream's: nobody has given the row to the sweeper. It also takes a time off rows that are dealt with.
	noTime value = "NULL"
	// dueNow gives the row to the sweeper.
	dueNow value = "NOW()"
)

// TheStreams is the value of a pending row that nobody has given to the sweeper, for statements that insert one.
const TheStreams = string(noTime)

// dueIn makes the row due after a delay: when a failed row is tried again, or a claim ends.
func dueIn(delay time.Duration) value { return dueNow + value("+"+mysql.Interval(delay)) }

// set renders the assignment.
func (n nextRetry) set(v value) string { return string(n) + "=" + string(v) }

// none is the condition of rows without a time, timed that of all others.
func (n nextRetry) none() string  { return string(n) + " IS NULL" }
func (n nextRetry) timed() string { return string(n) + " IS NOT NULL" }

// due is the condition of rows whose time has come, of all that have one.
func (n nextRetry) due() string { return string(n) + "<=NOW()" }

// dueFrom adds the lower bound of a search that goes on from where the last one ended, at a text that Now returned. It goes a
// second back: a row that became due within the second of the last look may not have been seen.
func (n nextRetry) dueFrom(text string) string {
	return string(n) + ">=" + mysql.Literal(text) + "-INTERVAL 1 SECOND"
}

// These compare the column with a text of it that was read: a spot in a lane.
func (n nextRetry) notBefore(text string) string { return string(n) + ">=" + mysql.Literal(text) }
func (n nextRetry) after(text string) string     { return string(n) + ">" + mysql.Literal(text) }
func (n nextRetry) notAfter(text string) string  { return string(n) + "<=" + mysql.Literal(text) }
func (n nextRetry) before(text string) string    { return string(n) + "<" + mysql.Literal(text) }

// sendable is the condition of rows that nothing keeps from being sent now: without a time, or due.
func (n nextRetry) sendable() string { return n.none() + " OR " + n.due() }

// farAhead is beyond what anybody waits for: parked rows, and those that their writer never wants to be sent, are due later
// than a duration can tell.
const farAhead = 10 * 365 * 24 * time.Hour

// ahead is the condition of rows that will be due: delayed by their writer, backing off, or claimed.
func (n nextRetry) ahead() string { return n.within(farAhead) }

// within is the condition of rows that will be due within a time from now.
func (n nextRetry) within(d time.Duration) string {
	return string(n) + ">NOW() AND " + string(n) + "<=" + string(dueIn(d))
}

// claimed is the condition of pending rows under a claim: due within its lease, and by the lease after update_time, which the
// claim has set as well. A delayed message lies in the same range of the index, but its two times are as its writer has set them.
func (t *Table) claimed(lease time.Duration) string {
	next, seconds := t.nextRetry(), int64(lease/time.Second)
	return fmt.Sprintf("%s AND TIMESTAMPDIFF(SECOND,%s,%s) BETWEEN %d AND %d",
		next.within(lease), t.Col(words.ColumnUpdateTime), next, seconds-1, seconds+1)
}

// Slot stands for one key of one topic: a second far in the future, which is the next_retry_time of the key's parked rows.
// So no query for due rows ever sees them, however many there are, and the index on (status, next_retry_time) leads to the
// rows of one key, although the key itself may be in no column. 0 is no slot.
//
// Two keys may share a slot, once in 69 billion pairs: then both wait, and both go on.
type Slot uint64

const (
	slots = 1 << 36
	// firstSlot is 5000-01-01, lastSlot about the year 7178. Writers who want a row never to be sent write 9999-12-31.
	firstSlot = 95617584000
	lastSlot  = firstSlot + slots
)

// SlotOf returns the slot of a key. It is the same for ever and everywhere, since rows are parked under it.
func SlotOf(topic string, key []byte) Slot {
	h := fnv.New64a()
	_, _ = h.Write([]byte(topic)) // a hash does not fail
	_, _ = h.Write([]byte{0})     // no topic has this byte
	_, _ = h.Write(key)
	sum := h.Sum64()
	return Slot(1 + (sum^sum>>36)%slots)
}

// value is the slot as a value of the column.
func (s Slot) value() value { return value(mysql.Literal(civil(firstSlot + int64(s)))) } //nolint:gosec // a slot is small

func civil(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.DateTime) }

// slotAt reads a next_retry_time back; false when it is none of a parked row.
func slotAt(text string) (Slot, bool) {
	at, err := time.Parse(time.DateTime, text) // accepts a fraction too
	if err != nil || at.Unix() <= firstSlot || at.Unix() > lastSlot {
		return 0, false
	}
	return Slot(at.Unix() - firstSlot), true //nolint:gosec // checked above
}

// ParkedSlot tells whether a row, as it was read, is parked, and where.
func ParkedSlot(row *outbox.Row) (Slot, bool) {
	if row.Status != outbox.Pending {
		return 0, false
	}
	return slotAt(row.NextRetry)
}

// parked is the condition of pending rows that are parked, in any slot.
func (n nextRetry) parked() string {
	return string(n) + ">" + mysql.Literal(civil(firstSlot)) + " AND " + string(n) + "<=" + mysql.Literal(civil(lastSlot))
}

// parkedIn is the condition of pending rows that are parked in a slot.
func (n nextRetry) parkedIn(slot Slot) string { return n.set(slot.value()) }

// CanPark returns an error that says what to do when a table can't keep the time of a parked row.
func (s *Store) CanPark() error {
	var errs []error
	for _, t := range s.Tables() {
		if t.cols[words.ColumnNextRetryTime].Type != "datetime" {
			errs = append(errs, fmt.Errorf("%s: router.after_dead: hold needs %s to be a DATETIME, which reaches far enough: change the column, or use release",
				t.Table, t.Col(words.ColumnNextRetryTime)))
		}
	}
	return errors.Join(errs...)
}
