package sweeper

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// Reckoning is the running verdict that the stream and the table agree. Each row that the sweeper takes up and the
// stream should have brought is counted under the reason that the stream has told, or as unexplained: nobody but the
// table knew of it, as of rows written with sql_log_bin=0. What is the sweeper's by design is counted apart.
//
// A reason is known in one of three ways: of the rows themselves (updates), of their number (XA, rows that can't be
// mapped), or only that there may be some (statements, DDL). The latter two explain any row, until a pass has seen
// that nothing is left; so what is silent within seconds of those may be counted for them, never the other way round.
//
// It lives as long as the process. A relay that takes over has not read what its predecessor read: the rows that its
// first complete pass finds count as start. Memory is bounded; all methods may be called concurrently, and on nil,
// where no binlog is read and all rows are the sweeper's.
type Reckoning struct {
	metrics   *metrics.Source
	delivered atomic.Int64

	mu     sync.Mutex
	named  map[outbox.Ref]notice // by table and id only
	number map[string]notice     // by reason
	// behind are reasons for rows of closed topics: no pass sees those before the topic is open.
	behind map[string]string
	counts map[string]int64 // of rows taken up, by reason
}

// notice is something that the stream has told.
type notice struct {
	reason string
	rows   int  // how many are still to come
	any    bool // nobody knows how many
	at     time.Time
}

// Totals is what a reckoning has counted.
type Totals struct {
	// Delivered are messages of the stream that Kafka has acked.
	Delivered int64
	// Recovered are rows that the stream should have brought and the sweeper took up, by reason; Unexplained among them.
	Recovered   int64
	Unexplained int64
	Reasons     map[string]int64
}

const (
	// maxNamed bounds the rows known by name; of more the number is kept.
	maxNamed = 20_000
	// readable is how long after its event in the binlog a row may take to be readable, as with semi-synchronous
	// replication.
	readable = 5 * time.Second
)

// NewReckoning returns one that has counted nothing.
func NewReckoning(m *metrics.Source) *Reckoning {
	return &Reckoning{
		metrics: m, named: map[outbox.Ref]notice{}, number: map[string]notice{}, behind: map[string]string{}, counts: map[string]int64{},
	}
}

// Begin tells that a stream begins: what is pending now may have been told of before.
func (r *Reckoning) Begin() { r.tell(words.MissedStart, 0, true, time.Time{}) }

// Delivered counts a message of the stream.
func (r *Reckoning) Delivered() {
	if r != nil {
		r.delivered.Add(1)
	}
}

// Rows tells of rows that the stream leaves to the sweeper, whatever their MsgID.
func (r *Reckoning) Rows(reason string, refs []outbox.Ref) {
	if r == nil || len(refs) == 0 {
		return
	}
	now := time.Now()
	r.mu.Lock()
	named := min(len(refs), max(0, maxNamed-len(r.named)))
	for _, ref := range refs[:named] {
		r.named[outbox.Ref{Table: ref.Table, ID: ref.ID}] = notice{reason: reason, at: now}
	}
	r.mu.Unlock()
	r.Number(reason, len(refs)-named)
}

// Number tells how many rows, at most, the stream leaves to the sweeper.
func (r *Reckoning) Number(reason string, n int) {
	if n > 0 {
		r.tell(reason, n, false, time.Now())
	}
}

// Some tells that the stream leaves rows to the sweeper, if any, without knowing how many.
func (r *Reckoning) Some(reason string) { r.tell(reason, 0, true, time.Now()) }

func (r *Reckoning) tell(reason string, n int, unknown bool, at time.Time) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.number[reason]
	r.number[reason] = notice{reason: reason, rows: known.rows + n, any: known.any || unknown, at: at}
}

// Totals returns what was counted so far.
func (r *Reckoning) Totals() Totals {
	if r == nil {
		return Totals{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := Totals{Delivered: r.delivered.Load(), Unexplained: r.counts[words.MissedUnexplained], Reasons: map[string]int64{}}
	for reason, n := range r.counts {
		t.Recovered += n
		t.Reasons[reason] = n
	}
	return t
}

// Take counts rows that were claimed, as they were before, of a topic that is open.
func (r *Reckoning) Take(rows ...outbox.Row) { r.take(rows, false) }

// take counts rows that the sweeper has claimed, as they were before. The stream has passed them all. It returns, for
// each, why it is the sweeper's by design, "" when it is not.
func (r *Reckoning) take(rows []outbox.Row, drained bool) []string {
	designed := make([]string, len(rows))
	if r == nil {
		return designed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range rows {
		reason := ""
		if reason, designed[i] = r.why(&rows[i], drained); reason != "" {
			r.counts[reason]++
			r.metrics.StreamMissed.WithLabelValues(reason).Inc()
		}
	}
	return designed
}

// why tells why a row is the sweeper's: a reason for which the stream did not bring it, or a design. A pending row
// without a next_retry_time is one that nobody has given to the sweeper, and is counted once, since its claim sets
// one.
func (r *Reckoning) why(row *outbox.Row, drained bool) (reason, design string) {
	key := outbox.Ref{Table: row.Table, ID: row.ID}
	if n, ok := r.named[key]; ok {
		delete(r.named, key)
		return n.reason, ""
	}
	switch {
	case row.Status == outbox.Failed:
		return "", words.SweptRetry
	case row.NextRetry != "" && drained:
		return "", words.SweptDeferred
	case row.NextRetry != "":
		return "", words.SweptDelayed
	}
	for _, reason := range words.Missed() {
		n, ok := r.number[reason]
		if !ok {
			continue
		}
		if n.rows > 0 {
			n.rows--
		}
		if r.number[reason] = n; n.rows == 0 && !n.any {
			delete(r.number, reason)
		}
		return reason, ""
	}
	if reason, ok := r.behind[row.Topic]; ok {
		return reason, ""
	}
	return words.MissedUnexplained, ""
}

// looked tells that a pass which began at a time, less what it left out as too fresh, has found everything pending
// but the rows of closed topics: what was told well before is explained.
func (r *Reckoning) looked(upTo time.Time, closed []string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	over := func(n notice) bool { return !n.at.Add(readable).After(upTo) }
	for ref, n := range r.named {
		if over(n) {
			delete(r.named, ref)
		}
	}
	for topic := range r.behind {
		if !slices.Contains(closed, topic) {
			delete(r.behind, topic)
		}
	}
	for _, reason := range words.Missed() {
		n, ok := r.number[reason]
		if !ok || !over(n) {
			continue
		}
		delete(r.number, reason)
		for _, topic := range closed {
			if _, known := r.behind[topic]; !known {
				r.behind[topic] = reason
			}
		}
	}
}
