package relay

import (
	"context"
	"errors"
	"time"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/sweeper"
)

// errLeft ends a session that has come to rows which the stream can't bring although they are in the binlog: their
// columns can't be told any more. The sweeper would send them some time after newer rows of their keys. So the next
// session begins as one without a usable position does: whatever is pending is recorded as the sweeper's, and goes
// first.
var errLeft = errors.New("rows of the binlog can't be read in their old shape, the table brings them before anything newer of their topics")

// leftPause is the least time between two such sessions. What is left within it is swept without an order to newer
// rows.
const leftPause = 10 * time.Second

// leaves reports whether a transaction has rows because of which the session has to end. Those of the replay window
// of a session that has recorded everything are recorded already.
func (p *pump) leaves(txn *assemble.Transaction) bool {
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

// tellMissed counts what the transaction leaves to the sweeper, and tells the reckoning. It comes before the
// transaction is tracked: the sweeper waits until that is settled, so it knows why a row is its own before it takes
// it up.
func (p *pump) tellMissed(txn *assemble.Transaction) {
	skipped := func(reason string, n int) { p.flow.metrics.StreamSkipped.WithLabelValues(reason).Add(float64(n)) }
	for reason, n := range txn.Missed {
		skipped(reason, n)
		switch reason {
		case words.MissedXA:
			if txn.XARows == assemble.XARowsUnknown {
				p.flow.reckoning.Some(reason)
			} else {
				p.flow.reckoning.Number(reason, txn.XARows)
			}
		case words.MissedStatement, words.MissedIncident:
			p.flow.reckoning.Some(reason)
		default:
			p.flow.reckoning.Number(reason, n)
		}
	}
	if n := len(txn.Revived) + txn.RevivedMore; n > 0 {
		skipped(words.MissedUpdate, n)
		p.flow.reckoning.Rows(words.MissedUpdate, txn.Revived)
		p.flow.reckoning.Number(words.MissedUpdate, txn.RevivedMore)
	}
	if txn.Altered {
		skipped(words.MissedDDL, 1)
		p.flow.reckoning.Some(words.MissedDDL)
	}
}

// Reconciliation is the verdict whether the stream and the table agree, since this process started.
type Reconciliation struct {
	// Delivered are messages that the stream brought and Kafka has acked.
	Delivered int64 `json:"stream_delivered"`
	// Recovered are rows that the stream should have brought, and the sweeper took up.
	Recovered int64 `json:"sweeper_recovered"`
	// Unexplained are those of Recovered of which nobody but the table knew.
	Unexplained int64 `json:"unexplained"`
	// Reasons are why the rows of Recovered are not the stream's, with their numbers.
	Reasons map[string]int64 `json:"recovered_by_reason,omitempty"`
}

func reconciled(r *sweeper.Reckoning) *Reconciliation {
	t := r.Totals()
	return &Reconciliation{Delivered: t.Delivered, Recovered: t.Recovered, Unexplained: t.Unexplained, Reasons: t.Reasons}
}

// recordBatch is how many rows are deferred at once.
const recordBatch = 1000

// record defers every row that was pending when the stream started at the binlog's present end. Until that is done
// the position is not saved, because it would cover rows that nothing but a lucky sweep remembers, and the topics of
// those rows are not drained, because a drain goes by the deferred rows. Rows that are committed meanwhile may be
// deferred too; that costs an UPDATE and does no harm.
func (s *session) record(ctx context.Context, rows Backlog) error {
	var last map[outbox.Table]uint64
	err := persist(ctx, s.log, "read the last ids", func(ctx context.Context) (err error) {
		last, err = rows.LastIDs(ctx)
		return err
	})
	total := 0
	for err == nil {
		n := 0
		err = persist(ctx, s.log, "record pending rows", func(ctx context.Context) error {
			refs, err := rows.Unrecorded(ctx, last, recordBatch)
			n = len(refs)
			if err != nil || n == 0 {
				return err
			}
			return rows.Defer(ctx, refs)
		})
		total += n
		if err == nil && n == 0 {
			s.recovery.left(total)
			s.recorded(total)
			return nil
		}
	}
	return err
}

func (s *session) recorded(rows int) {
	s.flow.lines.Recorded()
	if s.saver != nil {
		s.saver.release()
	}
	s.alarm.Kick()
	s.recovery.finish()
	if rows > 0 {
		s.log.Info().Int("count", rows).Msg("pending rows from before the start are left to the sweeper")
	}
}
