package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// judge holds one comparison. Its methods each check one promise.
type judge struct {
	opts    Options
	ev      Evidence
	entries map[string]*entry
	rows    map[string]Row
	first   map[string]Record // the first record of each message, in offset order
	faults  map[Kind]*Fault
	order   []Kind
	verdict *Verdict
}

// Judge compares the evidence with the ledger. The ledger is not changed; it must not grow meanwhile.
func Judge(l *Ledger, ev Evidence, opts Options) *Verdict {
	if opts.Tolerance == 0 {
		opts.Tolerance = time.Second
	}
	if opts.Examples == 0 {
		opts.Examples = 10
	}
	entries, counts := l.snapshot()
	j := &judge{
		opts: opts, ev: ev, entries: entries,
		rows: make(map[string]Row, len(ev.Rows)), first: make(map[string]Record, len(ev.Records)), faults: make(map[Kind]*Fault),
		verdict: &Verdict{Counts: counts, Records: len(ev.Records), Samples: len(ev.Samples)},
	}
	for _, row := range ev.Rows {
		j.rows[row.MsgID] = row
	}
	records := slices.Clone(ev.Records)
	slices.SortStableFunc(records, func(a, b Record) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	j.index(records)
	j.resolve()
	j.contents(records)
	j.sequence(records)
	j.deliveries()
	if ev.Rows != nil {
		j.statuses()
	}
	j.checkpoints()
	j.latency()
	for _, kind := range j.order {
		j.verdict.Faults = append(j.verdict.Faults, *j.faults[kind])
	}
	return j.verdict
}

// fault notes one more fault of a kind.
func (j *judge) fault(kind Kind, format string, args ...any) {
	f := j.faults[kind]
	if f == nil {
		f = &Fault{Kind: kind}
		j.faults[kind] = f
		j.order = append(j.order, kind)
	}
	f.Count++
	if len(f.Examples) < j.opts.Examples {
		f.Examples = append(f.Examples, fmt.Sprintf(format, args...))
	}
}

// index finds the first record of each message. A record that was copied to a second partition or topic is a copy
// too; which of them is the first is then decided by when the consumer had it.
func (j *judge) index(records []Record) {
	for _, r := range records {
		if r.Headers["outbox_position"] == "sweep" {
			j.verdict.Swept++
		}
		earlier, copied := j.first[r.MsgID]
		if !copied {
			j.first[r.MsgID] = r
			continue
		}
		j.verdict.Duplicates++
		if !j.opts.Duplicates {
			j.fault(Duplicated, "%s (%s[%d]@%d and @%d)", r.MsgID, r.Topic, r.Partition, earlier.Offset, r.Offset)
		}
		if (r.Topic != earlier.Topic || r.Partition != earlier.Partition) && r.Seen.Before(earlier.Seen) {
			j.first[r.MsgID] = r
		}
	}
}

// resolve settles unknown outcomes by the table (by the records where it was not read): all of a transaction, or none.
func (j *judge) resolve() {
	type txn struct{ there, absent []*entry }
	txns := make(map[int]*txn)
	for _, e := range j.entries {
		if e.outcome != Unknown {
			continue
		}
		t := txns[e.txn]
		if t == nil {
			t = &txn{}
			txns[e.txn] = t
		}
		_, there := j.rows[e.MsgID]
		if j.ev.Rows == nil {
			_, there = j.first[e.MsgID]
		}
		if there {
			t.there = append(t.there, e)
		} else {
			t.absent = append(t.absent, e)
		}
	}
	for _, t := range txns {
		for _, e := range t.absent {
			e.outcome = RolledBack
		}
		for _, e := range t.there {
			e.outcome, e.learned = Committed, true
		}
		if len(t.there) > 0 && len(t.absent) > 0 {
			j.fault(Half, "%s is there, %s is not", t.there[0].MsgID, t.absent[0].MsgID)
		}
	}
}

// contents checks every record, copies too, against what the writer meant.
func (j *judge) contents(records []Record) {
	for _, r := range records {
		e, known := j.entries[r.MsgID]
		if !known {
			j.fault(Phantom, "%q in %s[%d]@%d is in nobody's ledger", r.MsgID, r.Topic, r.Partition, r.Offset)
			continue
		}
		if e.outcome != Committed {
			j.fault(Phantom, "%s in %s[%d]@%d was rolled back", r.MsgID, r.Topic, r.Partition, r.Offset)
			continue
		}
		if e.Fate == Die {
			j.fault(Undying, "%s in %s[%d]@%d", r.MsgID, r.Topic, r.Partition, r.Offset)
			continue
		}
		if r.Value != e.Content {
			j.fault(Changed, "%s", r.MsgID)
		}
		if r.Topic != e.Topic {
			j.fault(WrongTopic, "%s went to %s instead of %s", r.MsgID, r.Topic, e.Topic)
		}
		if r.Key != e.Key {
			j.fault(WrongKey, "%s has key %q instead of %q", r.MsgID, r.Key, e.Key)
		}
		if what := j.headers(&r, e); what != "" {
			j.fault(WrongHeaders, "%s: %s", r.MsgID, what)
		}
	}
}

// headers returns what is wrong with a record's headers.
func (j *judge) headers(r *Record, e *entry) string {
	for name, want := range e.Headers {
		if got, has := r.Headers[name]; !has || got != want {
			return "header " + name
		}
	}
	if j.opts.Source == "" {
		return ""
	}
	if r.Headers["outbox_source"] != j.opts.Source {
		return "header outbox_source"
	}
	if at := r.Headers["outbox_position"]; at != "sweep" && (strings.Count(at, "/") < 2 || !strings.Contains(at, ":")) {
		return "header outbox_position"
	}
	if r.Headers["outbox_created"] == "" {
		return "header outbox_created"
	}
	return ""
}

// sequence checks that first occurrences of a topic and key follow commit order.
func (j *judge) sequence(records []Record) {
	type lane struct{ topic, key string }
	type head struct {
		last      *entry
		partition int32
	}
	lanes := make(map[lane]*head)
	for _, r := range records {
		e, known := j.entries[r.MsgID]
		if !known || e.outcome != Committed || !e.ordered() {
			continue
		}
		if f := j.first[r.MsgID]; f.Topic != r.Topic || f.Partition != r.Partition || f.Offset != r.Offset {
			continue
		}
		h := lanes[lane{r.Topic, e.Key}]
		switch {
		case h == nil:
			lanes[lane{r.Topic, e.Key}] = &head{last: e, partition: r.Partition}
		case h.partition != r.Partition:
			j.fault(Split, "key %q of %s is in %d and %d", e.Key, r.Topic, h.partition, r.Partition)
		case e.seq < h.last.seq:
			j.fault(Inverted, "%s after %s (key %q, %s[%d]@%d)", r.MsgID, h.last.MsgID, e.Key, r.Topic, r.Partition, r.Offset)
		default:
			h.last = e
		}
	}
}

// deliveries checks that every committed message was seen, delayed ones in their time.
func (j *judge) deliveries() {
	for _, e := range j.sorted() {
		if e.outcome != Committed || e.Fate == Die {
			continue
		}
		r, seen := j.first[e.MsgID]
		if !seen {
			j.fault(Lost, "%s", j.describe(e))
			continue
		}
		j.verdict.Delivered++
		if e.Due.IsZero() {
			continue
		}
		if off := r.Seen.Sub(e.Due); off.Abs() > j.opts.Tolerance {
			j.fault(WrongTime, "%s was seen %s from its due time", e.MsgID, off.Round(time.Millisecond))
		}
	}
}

// latency measures the first record of each message whose commit time is known. The consumer may well have a record
// before COMMIT answers the writer: that counts as zero.
func (j *judge) latency() {
	var done, sent []time.Duration
	for id, e := range j.entries {
		r, seen := j.first[id]
		if !seen || e.outcome != Committed || e.learned || e.done.IsZero() || !e.Due.IsZero() {
			continue
		}
		done = append(done, max(0, r.Seen.Sub(e.done)))
		sent = append(sent, max(0, r.Seen.Sub(e.sent)))
	}
	j.verdict.Latency, j.verdict.FromSend = LatencyOf(done), LatencyOf(sent)
}

// sorted returns the entries in ledger order, so that the same evidence gives the same words.
func (j *judge) sorted() []*entry {
	all := make([]*entry, 0, len(j.entries))
	for _, e := range j.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// describe tells where a message stands in its table.
func (j *judge) describe(e *entry) string {
	row, there := j.rows[e.MsgID]
	if !there {
		return fmt.Sprintf("%s (%s)", e.MsgID, e.Table)
	}
	return fmt.Sprintf("%s (%s id %d, %s)", e.MsgID, e.Table, row.ID, row.Status)
}
