package relay

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/words"
)

// Recovery is how the relay got over something, and what that cost.
type Recovery struct {
	Kind   string    `json:"kind"`
	Detail string    `json:"detail,omitempty"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"` // zero while it runs
	// From is the saved place and To where reading began. Skipped tells that what lies between is not read.
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Skipped bool   `json:"range_skipped"`

	RecoveryRows

	// Advice is what a person should do, "" for nothing.
	Advice string `json:"advice,omitempty"`
}

// RecoveryRows is what a recovery cost, in rows.
type RecoveryRows struct {
	ReadAgain     int64 `json:"rows_read_again"`      // in the replay window
	AlreadySent   int64 `json:"rows_already_sent"`    // of those, not sent again since the table says that they were
	InKafka       int64 `json:"rows_found_in_kafka"`  // of those, not sent again since Kafka's tail has them
	LeftToSweeper int64 `json:"rows_left_to_sweeper"` // recorded in the table as the sweeper's
	Held          int64 `json:"rows_held,omitempty"`  // marked only once their table was back
}

// String is the recovery in one line.
func (r Recovery) String() string {
	var b strings.Builder
	b.WriteString(r.Kind)
	if r.Ended.IsZero() {
		b.WriteString(" (running)")
	} else {
		fmt.Fprintf(&b, " (%s, took %s)", r.Began.UTC().Format(time.RFC3339), r.Ended.Sub(r.Began).Round(time.Millisecond))
	}
	if r.Skipped {
		fmt.Fprintf(&b, ", not read: %s to %s", r.From, r.To)
	}
	fmt.Fprintf(&b, ", rows: %d read again, %d already sent, %d found in Kafka, %d left to the sweeper",
		r.ReadAgain, r.AlreadySent, r.InKafka, r.LeftToSweeper)
	if r.Held > 0 {
		fmt.Fprintf(&b, ", %d held", r.Held)
	}
	for _, text := range []string{r.Detail, r.Advice} {
		if text != "" {
			b.WriteString("; " + text)
		}
	}
	return b.String()
}

// recoveryAdvice is what a person should do about each kind.
var recoveryAdvice = map[string]string{
	words.RecoveryNone:        "expected at a first start; else let Redis persist (AOF) and not evict",
	words.RecoveryLost:        "let Redis persist (AOF) and not evict, and see who deletes its keys",
	words.RecoveryBroken:      "see who else writes to the relay's keys in Redis; outbox-relay checkpoint history tells what was saved",
	words.RecoveryPurged:      "keep binlogs longer than the longest outage (binlog_expire_logs_seconds)",
	words.RecoveryInvalid:     "expected after a reset of the binlog or a restore of the server; else see outbox-relay checkpoint history",
	words.RecoveryOtherServer: "expected after a failover without GTIDs, or to a server that lacks transactions: switch GTIDs on, fail over to the most advanced replica",
	words.RecoveryMoved:       "nothing to do",
	words.RecoveryTableGone:   "bring the table back, or reset the checkpoint to give its rows up",
	words.RecoveryColumns:     "set binlog_row_metadata=FULL, so that the binlog tells the names of columns",
	words.RecoveryGone:        "give the table or the column its name back; its rows are swept then, by id",
	words.RecoveryMetadata:    "see the log for why the columns could not be read; SELECT on the table is needed",
}

// recoveries keeps the last recovery of each kind. It may be used concurrently.
type recoveries struct {
	metrics *metrics.Source
	log     zerolog.Logger

	mu   sync.Mutex
	list []*recovery // the newest last, one of each kind
}

// recovery is one that runs or has ended. A nil one takes everything and does nothing.
type recovery struct {
	of *recoveries
	// everything that was pending is recorded, and counted there.
	everything bool
	// Guarded by of.mu.
	is    Recovery
	parts int // that have not ended
}

// begin notes a recovery that has ended once finish was called so many times.
func (r *recoveries) begin(is Recovery, parts int) *recovery {
	is.Began, is.Advice = time.Now(), recoveryAdvice[is.Kind]
	one := &recovery{of: r, is: is, parts: parts}
	r.mu.Lock()
	r.list = slices.DeleteFunc(r.list, func(old *recovery) bool { return old.is.Kind == is.Kind })
	r.list = append(r.list, one)
	r.publish(&one.is)
	r.mu.Unlock()
	if is.Kind != words.RecoveryResumed {
		r.metrics.Recoveries.WithLabelValues(is.Kind).Inc()
	}
	return one
}

// started notes how a session's stream begins. What an earlier session was about has ended with it.
func (r *recoveries) started(start canal.Start, saved string, parts int) *recovery {
	r.mu.Lock()
	for _, old := range r.list {
		if old.is.Ended.IsZero() {
			old.is.Ended, old.parts = time.Now(), 0
		}
	}
	r.mu.Unlock()
	is := Recovery{Kind: start.Recovery, Detail: start.Detail, From: saved, To: start.Position.String(), Skipped: !start.Usable && saved != ""}
	return r.begin(is, parts)
}

// short notes something that was over at once, together with what was like it just before.
func (r *recoveries) short(kind, detail string, took time.Duration, left int64) {
	r.mu.Lock()
	var last *recovery
	if n := len(r.list); n > 0 && r.list[n-1].is.Kind == kind {
		last = r.list[n-1]
	}
	r.mu.Unlock()
	if last == nil {
		last = r.begin(Recovery{Kind: kind, Detail: detail}, 0)
		r.log.Warn().Str("recovery", kind).Str("detail", detail).Dur("took", took).Int64("left_to_sweeper", left).
			Str("advice", recoveryAdvice[kind]).Msg("recovered")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last.is.Ended, last.is.LeftToSweeper = time.Now(), last.is.LeftToSweeper+left
	if first := last.is.Ended.Add(-took); first.Before(last.is.Began) {
		last.is.Began = first
	}
	r.publish(&last.is)
}

// missed notes what a transaction tells of columns: rows left to the sweeper, and time that was waited.
func (r *recoveries) missed(txn *assemble.Transaction) {
	if r == nil {
		return
	}
	if n := txn.Missed[words.MissedColumns]; n > 0 {
		r.short(words.RecoveryColumns, "rows of another shape than the table has now", 0, int64(n))
	}
	if n := txn.Missed[words.MissedGone]; n > 0 {
		r.short(words.RecoveryGone, "rows of a table that does not exist any more, or lacks a needed column", 0, int64(n))
	}
	if txn.Waited > 0 {
		r.short(words.RecoveryMetadata, fmt.Sprintf("the stream waited %s for a table's columns", txn.Waited.Round(time.Millisecond)), txn.Waited, 0)
	}
}

// gone notes that a table is missing whose rows are to be marked.
func (r *recoveries) gone(err error) *recovery {
	if r == nil {
		return nil
	}
	return r.begin(Recovery{Kind: words.RecoveryTableGone, Detail: err.Error()}, 1)
}

// publish shows a recovery in the metrics. The caller holds mu.
func (r *recoveries) publish(is *Recovery) {
	set := func(outcome string, n int64) {
		r.metrics.RecoveryRows.WithLabelValues(is.Kind, outcome).Set(float64(n))
	}
	set(words.RowsReadAgain, is.ReadAgain)
	set(words.RowsAlreadySent, is.AlreadySent)
	set(words.RowsInKafka, is.InKafka)
	set(words.RowsLeftToSweeper, is.LeftToSweeper)
	if is.Kind == words.RecoveryTableGone {
		set(words.RowsHeld, is.Held)
	}
	r.metrics.LastRecovery.WithLabelValues(is.Kind).Set(float64(is.Began.Unix()))
}

// all returns the last recovery of each kind, the newest first.
func (r *recoveries) all() []Recovery {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Recovery
	for _, one := range slices.Backward(r.list) {
		list = append(list, one.is)
	}
	return list
}

// check is the line of readiness: the newest that was more than going on, or how the stream began.
func (r *recoveries) check() Check {
	c := Check{Name: "recovery"}
	for _, is := range r.all() {
		if c.Detail == "" || is.Kind != words.RecoveryResumed {
			c.Detail = is.String()
		}
		if is.Kind != words.RecoveryResumed {
			break
		}
	}
	return c
}

// looked counts rows of the replay window by what is known of them.
func (r *recovery) looked(verdicts []replayVerdict) {
	r.change(func(is *Recovery) {
		is.ReadAgain += int64(len(verdicts))
		for _, v := range verdicts {
			switch v {
			case replaySettled:
				is.AlreadySent++
			case replayInKafka:
				is.InKafka++
			case replaySweepers:
				if !r.everything {
					is.LeftToSweeper++
				}
			case replayUnknown:
			}
		}
	})
}

// held counts rows that were marked late.
func (r *recovery) held(rows int) { r.change(func(is *Recovery) { is.Held += int64(rows) }) }

// left counts rows that were recorded as the sweeper's.
func (r *recovery) left(rows int) { r.change(func(is *Recovery) { is.LeftToSweeper += int64(rows) }) }

func (r *recovery) change(change func(*Recovery)) {
	if r == nil {
		return
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	change(&r.is)
	r.of.publish(&r.is)
}

// finish ends a part, and tells what it cost when it was the last.
func (r *recovery) finish() {
	if r == nil {
		return
	}
	r.of.mu.Lock()
	over := r.parts == 1
	r.parts = max(0, r.parts-1)
	if over {
		r.is.Ended = time.Now()
	}
	is := r.is
	r.of.mu.Unlock()
	if over {
		r.of.tell(is)
	}
}

// tell logs a recovery that has ended, with what to do about it. A plain start that read nothing again is no news.
func (r *recoveries) tell(is Recovery) {
	event, text := r.log.Warn(), "recovered"
	switch {
	case is.Kind == words.RecoveryResumed && is.ReadAgain+is.LeftToSweeper == 0:
		return
	case is.Kind == words.RecoveryResumed:
		event, text = r.log.Info(), "replay window passed"
	}
	event.Str("recovery", is.Kind).Str("detail", is.Detail).Str("saved", is.From).Str("position", is.To).Bool("range_skipped", is.Skipped).
		Int64("read_again", is.ReadAgain).Int64("already_sent", is.AlreadySent).Int64("found_in_kafka", is.InKafka).
		Int64("left_to_sweeper", is.LeftToSweeper).Int64("held", is.Held).Dur("took", is.Ended.Sub(is.Began)).Str("advice", is.Advice).Msg(text)
}
