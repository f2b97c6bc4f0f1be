package assemble

import (
	"errors"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// rowBuffer gathers the rows that one transaction inserts, and what it does to them afterwards, in bounded memory.
//
// Updates and deletes are not applied when they come, because the row may be in the file by then and an index of all
// rows would not be bounded. They are kept as changes by (table, id), and applied when the rows are read: a change
// concerns the rows that were inserted before it. Changes need memory as well: with them the buffer may have twice
// its bound; when they outgrow that, the rows are given up to the sweeper.
type rowBuffer struct {
	limit int
	dir   string
	// expect is how many rows are likely to come.
	expect int

	rows  []outbox.Row // the first rows
	spill *spillFile   // the others
	bytes int          // what rows and changes need

	changes []change
	byRow   map[rowKey][]int // the changes of one row, by their index in changes
	odd     int              // rows inserted with a status other than pending
	lost    int              // rows given up
	reason  string           // why, one of words.Missed*
	failed  error            // the error behind it, if there was one
}

// rowKey names a row.
type rowKey struct {
	table outbox.Table
	id    uint64
}

// change is what an update or a delete does to the rows of its key that were inserted before it.
type change struct {
	key rowKey
	// before is how many rows had been inserted when it came.
	before int
	// update is nil for a delete. It may change the row's key.
	update func(row *outbox.Row)
	bytes  int
}

// bufferMark is a savepoint.
type bufferMark struct {
	rows, bytes, changes, odd, lost int
	spill                           spillMark
}

// rowOverhead is about what a row needs beside its bytes; changeOverhead the same for a change with its map entry.
const (
	rowOverhead    = 256
	changeOverhead = 256
)

// rowLimit keeps a part of the bound for changes: rows go to the file at seven eighths of it.
func (b *rowBuffer) rowLimit() int { return b.limit - b.limit/8 }

// count returns how many rows were inserted.
func (b *rowBuffer) count() int {
	if b.spill != nil {
		return len(b.rows) + b.spill.rows
	}
	return len(b.rows)
}

// insert adds a row.
func (b *rowBuffer) insert(row *outbox.Row) {
	if b.lost > 0 {
		b.lost++
		return
	}
	if row.Status != outbox.Pending {
		b.odd++
	}
	size := rowSize(row)
	if b.spill == nil && b.bytes+size <= b.rowLimit() {
		if b.rows == nil {
			b.rows = make([]outbox.Row, 0, b.expect)
		}
		b.rows = append(b.rows, *row)
		b.bytes += size
		return
	}
	if b.spill == nil {
		spill, err := newSpillFile(b.dir)
		if err != nil {
			b.giveUp(words.MissedLarge, err)
			b.lost++
			return
		}
		b.spill = spill
	}
	if err := b.spill.append(row); err != nil {
		b.giveUp(words.MissedLarge, err)
		b.lost++
	}
}

// change notes an update or a delete of a row that may have been inserted by this transaction. size is about what
// the update keeps alive.
func (b *rowBuffer) change(key rowKey, update func(*outbox.Row), size int) {
	if b.lost > 0 {
		return
	}
	if b.byRow == nil {
		b.byRow = make(map[rowKey][]int)
	}
	size += changeOverhead
	b.byRow[key] = append(b.byRow[key], len(b.changes))
	b.changes = append(b.changes, change{key: key, before: b.count(), update: update, bytes: size})
	b.bytes += size
	if b.bytes > 2*b.limit {
		b.giveUp(words.MissedLarge, nil)
	}
}

// giveUp drops everything: the sweeper will find the rows.
func (b *rowBuffer) giveUp(reason string, err error) {
	b.lost += b.count()
	b.reason, b.failed = reason, err
	b.rows, b.changes, b.byRow, b.bytes = nil, nil, nil, 0
	if b.spill != nil {
		b.failed = errors.Join(b.failed, b.spill.close())
		b.spill = nil
	}
}

// mark returns a savepoint.
func (b *rowBuffer) mark() bufferMark {
	m := bufferMark{rows: len(b.rows), bytes: b.bytes, changes: len(b.changes), odd: b.odd, lost: b.lost}
	if b.spill != nil {
		m.spill = b.spill.mark()
	}
	return m
}

// rollback returns to a savepoint.
func (b *rowBuffer) rollback(m bufferMark) {
	if b.lost > 0 {
		// What was before the savepoint was given up with the rest, so at least one row stays lost if there were any.
		b.lost = min(b.lost, max(m.lost, m.rows+m.spill.rows))
		return
	}
	clear(b.rows[m.rows:])
	b.rows = b.rows[:m.rows]
	for i := len(b.changes) - 1; i >= m.changes; i-- {
		key := b.changes[i].key
		if list := b.byRow[key]; len(list) > 1 {
			b.byRow[key] = list[:len(list)-1]
		} else {
			delete(b.byRow, key)
		}
	}
	clear(b.changes[m.changes:])
	b.changes = b.changes[:m.changes]
	b.bytes, b.odd = m.bytes, m.odd
	if b.spill != nil {
		if err := b.spill.truncate(m.spill); err != nil {
			b.giveUp(words.MissedLarge, err)
		}
	}
}

func (b *rowBuffer) close() error {
	b.rows, b.changes, b.byRow = nil, nil, nil
	if b.spill == nil {
		return nil
	}
	spill := b.spill
	b.spill = nil
	return spill.close()
}

func rowSize(row *outbox.Row) int {
	return rowOverhead + len(row.MsgID) + len(row.Topic) + len(row.Content) + len(row.Key) + len(row.Headers) +
		len(row.TraceParent) + len(row.BodyRef) + len(row.NextRetry) + len(row.Created)
}
