package oracle

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// Hash identifies a content without keeping it.
type Hash [16]byte

// HashOf hashes a message's content.
func HashOf(content []byte) Hash {
	sum := sha256.Sum256(content)
	return Hash(sum[:16])
}

// Outcome is what the writer knows of a transaction.
type Outcome uint8

// The outcomes. Unknown is a COMMIT that got no answer: the table tells at the end.
const (
	Committed Outcome = iota
	RolledBack
	Unknown
)

// Fate is what must become of a committed message.
type Fate uint8

// The fates.
const (
	Deliver Fate = iota // reaches its topic, ends sent
	Die                 // can never be sent: no record, ends dead with a reason
)

// Message is one row as the writer meant it.
type Message struct {
	MsgID string
	Table string // database.table
	Topic string // the topic its record belongs in
	// Key is the record's key; the message's own id when it has none, and then it has no order to keep.
	Key     string
	Content Hash
	// Headers must all be among the record's headers; others may be there too.
	Headers map[string]string
	// Due is when a delayed message may go out; zero for at once. A delayed message has no order to keep.
	Due  time.Time
	Fate Fate
	// Unlogged says that the row never was in the binlog, so no checkpoint can cover it and it has no commit order.
	Unlogged bool
}

// ordered reports whether the message has a place among others of its key.
func (m *Message) ordered() bool { return m.Key != m.MsgID && m.Due.IsZero() && !m.Unlogged }

// Transaction is what a writer did between BEGIN and its end.
type Transaction struct {
	// Messages in the order of their inserts. Undone ones were inserted and taken back by ROLLBACK TO or DELETE.
	Messages, Undone []Message
	Outcome          Outcome
	// Begun is when BEGIN was sent, Sent when COMMIT was, Done when its answer came.
	Begun, Sent, Done time.Time
}

// Ledger is the writers' book. Safe for many writers.
//
// Each message gets a sequence number when its transaction is added, which a writer does after COMMIT has answered and
// before its next transaction. So the numbers follow commit order for any key that only one writer uses, and at any time
// every message with a number up to Seq has been committed already.
type Ledger struct {
	mu      sync.Mutex
	entries map[string]*entry
	txns    int
	seq     uint64
	counts  Counts
}

type entry struct {
	Message
	outcome    Outcome
	seq        uint64
	txn        int
	begun      time.Time
	sent, done time.Time
	// learned marks an outcome that was unknown to the writer: neither its time nor its place among others is certain.
	learned bool
}

// Counts are the ledger's totals, in messages but for Transactions.
type Counts struct {
	Transactions, Committed, RolledBack, Unknown int
}

// NewLedger returns an empty book.
func NewLedger() *Ledger { return &Ledger{entries: make(map[string]*entry)} }

// Add enters a transaction. It fails when a msg_id was entered before: the test's writer is broken then.
func (l *Ledger) Add(t Transaction) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.txns++
	l.counts.Transactions++
	for i := range t.Messages {
		if err := l.add(t.Messages[i], t.Outcome, &t); err != nil {
			return err
		}
	}
	for i := range t.Undone {
		if err := l.add(t.Undone[i], RolledBack, &t); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) add(m Message, outcome Outcome, t *Transaction) error {
	if _, taken := l.entries[m.MsgID]; taken {
		return fmt.Errorf("ledger: message %s entered twice", m.MsgID)
	}
	l.seq++
	l.entries[m.MsgID] = &entry{Message: m, outcome: outcome, seq: l.seq, txn: l.txns, begun: t.Begun, sent: t.Sent, done: t.Done}
	switch outcome {
	case Committed:
		l.counts.Committed++
	case RolledBack:
		l.counts.RolledBack++
	case Unknown:
		l.counts.Unknown++
	}
	return nil
}

// Seq returns the last number given. What is committed up to now has a number up to it.
func (l *Ledger) Seq() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// Counts returns the totals so far.
func (l *Ledger) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Commits returns how long the committed transactions took that were begun from from until to: from BEGIN to COMMIT's
// answer, and COMMIT alone.
func (l *Ledger) Commits(from, to time.Time) (whole, commit Latency) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var wholes, commits []time.Duration
	seen := make(map[int]bool)
	for _, e := range l.entries {
		if e.outcome != Committed || seen[e.txn] || e.begun.Before(from) || !e.begun.Before(to) {
			continue
		}
		seen[e.txn] = true
		wholes, commits = append(wholes, e.done.Sub(e.begun)), append(commits, e.done.Sub(e.sent))
	}
	return LatencyOf(wholes), LatencyOf(commits)
}

// snapshot copies the entries, so that a judgement may change outcomes and be repeated.
func (l *Ledger) snapshot() (map[string]*entry, Counts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	copied := make(map[string]*entry, len(l.entries))
	for id, e := range l.entries {
		c := *e
		copied[id] = &c
	}
	return copied, l.counts
}
