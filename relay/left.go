package relay

import (
	"errors"
	"time"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/internal/words"
)

// errLeft ends a session that has come to rows which the stream can't bring although they are in the binlog: their columns
// can't be told any more. The sweeper would send them some time after newer rows of their keys. So the next session begins as one
// without a usable position does: whatever is pending is recorded as the sweeper's, and goes first.
var errLeft = errors.New("rows of the binlog can't be read in their old shape, the table brings them before anything newer of their topics")

// leftPause is the least time between two such sessions. What is left within it is swept without an order to newer rows.
const leftPause = 10 * time.Second

// leaves reports whether a transaction has rows because of which the session has to end. Those of the replay window of a
// session that has recorded everything are recorded already.
func (p *pump) leaves(txn *canal.Transaction) bool {
	if p.leaving.everything && !p.replay.over {
		return false
	}
	return txn.Missed[words.MissedColumns]+txn.Missed[words.MissedDecode]+txn.Missed[words.MissedLarge] > 0 && p.leaving.may()
}

// mayLeave allows the end of a session because of rows that are left, not too often.
func (l *leadership) mayLeave() bool {
	if !l.leftAt.IsZero() && time.Since(l.leftAt) < leftPause {
		return false
	}
	l.leftAt = time.Now()
	return true
}
