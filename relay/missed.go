package relay

import (
	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/sweeper"
)

// tellMissed counts what the transaction leaves to the sweeper, and tells the reckoning. It comes before the transaction is
// tracked: the sweeper waits until that is settled, so it knows why a row is its own before it takes it up.
func (p *pump) tellMissed(txn *canal.Transaction) {
	skipped := func(reason string, n int) { p.flow.metrics.StreamSkipped.WithLabelValues(reason).Add(float64(n)) }
	for reason, n := range txn.Missed {
		skipped(reason, n)
		switch reason {
		case words.MissedXA:
			if txn.XARows == canal.XARowsUnknown {
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
