package canal

import (
	"math"
	"time"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/outbox"
)

// NewTransaction makes a transaction of rows in memory: for those who take transactions and want to be tried without a
// server. The rows must be pending.
func NewTransaction(end position.End, committedAt time.Time, rows ...outbox.Row) *Transaction {
	buffer := &rowBuffer{limit: math.MaxInt}
	for i := range rows {
		buffer.insert(&rows[i])
	}
	return &Transaction{End: end, CommittedAt: committedAt, rows: buffer, n: len(rows)}
}
