package assemble

import (
	"errors"
	"iter"
	"math"
	"time"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/outbox"
)

// Transaction is what one committed transaction, or a stretch of the binlog without anything for us, left behind.
type Transaction struct {
	// End is the position behind the transaction: resume there once its rows are settled.
	End position.End
	// CommittedAt is when it was committed, by the server's clock: to the microsecond on MySQL 8 and later, to the second
	// elsewhere.
	CommittedAt time.Time
	// Kick requests a sweep soon: something became pending that the stream does not bring.
	Kick bool
	// Missed counts what was left to the sweeper, by words.Missed*. An XA transaction counts as one, however many rows
	// it has. Nil when nothing was.
	Missed map[string]int
	// Waited is how long the reader had to wait before this transaction until the server answered with a table's columns.
	Waited time.Duration
	// Revived are rows that an UPDATE made due: by hand, by an upsert, by an operator's retry. They carry no MsgID. Of
	// more than a thousand the others are only counted, in RevivedMore.
	Revived     []outbox.Ref
	RevivedMore int
	// XARows is at most how many pending rows a committed XA transaction brought, XARowsUnknown when its rows were not
	// seen.
	XARows int
	// Altered means that a statement may have brought rows: a renamed table, an exchanged partition.
	Altered bool

	rows *rowBuffer
	n    int
	read bool
}

// XARowsUnknown is the XARows of a transaction that was prepared before the stream began.
const XARowsUnknown = -1

// errRead is returned by a second Rows.
var errRead = errors.New("rows of the transaction were read before")

// Len returns how many rows Rows yields.
func (t *Transaction) Len() int { return t.n }

// Rows yields the rows that the transaction left pending, in the order in which they were inserted. It may be used
// once. An error is the last thing that it yields; the transaction is then not complete.
func (t *Transaction) Rows() iter.Seq2[outbox.Row, error] {
	return func(yield func(outbox.Row, error) bool) {
		switch {
		case t.n == 0:
		case t.read:
			yield(outbox.Row{}, errRead)
		default:
			t.read = true
			t.rows.pending(yield)
		}
	}
}

// Close frees what the transaction holds. It may be called more than once.
func (t *Transaction) Close() error {
	if t.rows == nil {
		return nil
	}
	rows := t.rows
	t.rows, t.read = nil, true
	return rows.close()
}

// empty reports whether the transaction holds nothing but progress.
func (t *Transaction) empty() bool { return t.n == 0 && !t.Kick && len(t.Missed) == 0 }

// NewTransaction makes a transaction of rows in memory: for tests of what handles transactions, without a
// server. The rows must be pending.
func NewTransaction(end position.End, committedAt time.Time, rows ...outbox.Row) *Transaction {
	buffer := &rowBuffer{limit: math.MaxInt}
	for i := range rows {
		buffer.insert(&rows[i])
	}
	return &Transaction{End: end, CommittedAt: committedAt, rows: buffer, n: len(rows)}
}
