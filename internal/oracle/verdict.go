package oracle

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind names a fault.
type Kind string

// The kinds of fault.
const (
	Lost            Kind = "lost"             // committed, and no record of it
	Phantom         Kind = "phantom"          // a record of what did not commit
	Inverted        Kind = "out of order"     // first seen after a later message of its topic and key
	Split           Kind = "key in two parts" // one key in two partitions: it has no order
	Duplicated      Kind = "duplicate"        // a second record where none is allowed
	Changed         Kind = "changed bytes"    // the value is not the content
	WrongTopic      Kind = "wrong topic"
	WrongKey        Kind = "wrong key"
	WrongHeaders    Kind = "wrong headers"
	WrongTime       Kind = "wrong time"         // a delayed message seen too early or too late
	Unsettled       Kind = "left unsettled"     // a row that did not end sent (or dead, where it must)
	Undying         Kind = "sent against hope"  // a record, or the status sent, of a message that can't be sent
	Spent           Kind = "retries spent"      // retry_count grew without the message's own fault
	Missing         Kind = "row missing"        // a committed row that the table does not have
	Stranger        Kind = "strange row"        // a row that the ledger does not know as committed
	Half            Kind = "half a transaction" // some rows of an unknown transaction are there, others not
	CheckpointAhead Kind = "checkpoint ahead"   // it covers an unsettled row
	CheckpointBack  Kind = "checkpoint went back"
	CheckpointTorn  Kind = "checkpoint torn" // it stands inside a transaction
)

// Fault is one kind of fault with how often it was found and a few of the messages.
type Fault struct {
	Kind     Kind     `json:"kind"`
	Count    int      `json:"count"`
	Examples []string `json:"examples"`
}

// Verdict is the outcome of a comparison.
type Verdict struct {
	Counts     `json:"ledger"`
	Records    int     `json:"records"`
	Delivered  int     `json:"delivered"` // different committed messages that were seen
	Duplicates int     `json:"duplicates"`
	Swept      int     `json:"swept"` // records sent by the sweeper
	Dead       int     `json:"dead"`
	Samples    int     `json:"checkpoint_samples"`
	Faults     []Fault `json:"faults"`
	// Latency is from COMMIT's answer to the consumer, FromSend from the moment COMMIT was sent.
	Latency  Latency `json:"latency"`
	FromSend Latency `json:"latency_from_send"`
}

// OK reports whether no fault was found.
func (v *Verdict) OK() bool { return len(v.Faults) == 0 }

// Count returns how often a kind of fault was found.
func (v *Verdict) Count(kind Kind) int {
	for _, f := range v.Faults {
		if f.Kind == kind {
			return f.Count
		}
	}
	return 0
}

// Err returns nil, or an error that names every fault.
func (v *Verdict) Err() error {
	if v.OK() {
		return nil
	}
	lines := make([]string, 0, len(v.Faults))
	for _, f := range v.Faults {
		lines = append(lines, f.String())
	}
	return fmt.Errorf("verdict: %s", strings.Join(lines, "; "))
}

// String names the fault, its count and its examples.
func (f Fault) String() string {
	more := ""
	if f.Count > len(f.Examples) {
		more = ", ..."
	}
	return fmt.Sprintf("%s %d (%s%s)", f.Kind, f.Count, strings.Join(f.Examples, ", "), more)
}

// String prints the verdict in a few lines.
func (v *Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "committed %d, rolled back %d, unknown %d in %d transactions; records %d, delivered %d, swept %d, dead %d\n",
		v.Committed, v.RolledBack, v.Unknown, v.Transactions, v.Records, v.Delivered, v.Swept, v.Dead)
	fmt.Fprintf(&b, "lost %d, phantom %d, out of order %d, duplicates %d\n",
		v.Count(Lost), v.Count(Phantom), v.Count(Inverted), v.Duplicates)
	fmt.Fprintf(&b, "commit to consumed: p50 %s, p99 %s, max %s\n", v.Latency.P50, v.Latency.P99, v.Latency.Max)
	for _, f := range v.Faults {
		fmt.Fprintf(&b, "FAULT %s\n", f)
	}
	return b.String()
}

// Latency sums up a set of durations.
type Latency struct {
	N   int           `json:"n"`
	P50 time.Duration `json:"p50"`
	P90 time.Duration `json:"p90"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
}

// LatencyOf sums up durations by sorting them: exact, and small enough for the runs judged here.
func LatencyOf(durations []time.Duration) Latency {
	if len(durations) == 0 {
		return Latency{}
	}
	sorted := slices.Clone(durations)
	slices.Sort(sorted)
	at := func(permille int) time.Duration {
		return sorted[(len(sorted)-1)*permille/1000].Round(time.Microsecond)
	}
	return Latency{N: len(sorted), P50: at(500), P90: at(900), P99: at(990), Max: at(1000)}
}

// LatencyOfRun is the latency from COMMIT's answer to the consumer of the messages whose ids begin with a prefix, as far as
// they were consumed.
func LatencyOfRun(l *Ledger, records []Record, prefix string) Latency {
	entries, _ := l.snapshot()
	first := make(map[string]time.Time)
	for i := range records {
		id := records[i].MsgID
		if seen, copied := first[id]; strings.HasPrefix(id, prefix) && (!copied || records[i].Seen.Before(seen)) {
			first[id] = records[i].Seen
		}
	}
	var done []time.Duration
	for id, seen := range first {
		if e := entries[id]; e != nil && e.outcome == Committed && !e.done.IsZero() {
			done = append(done, max(0, seen.Sub(e.done)))
		}
	}
	return LatencyOf(done)
}
