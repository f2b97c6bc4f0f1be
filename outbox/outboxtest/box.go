// Package outboxtest lets code that writes messages be tested without a database. Its Box takes what the real one takes, refuses
// what that refuses, and keeps the rest in memory; RequireMessage and RequireNone ask it.
package outboxtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// Message is a message that was put. Headers has the traceparent too, when there is one.
type Message struct {
	ID, Topic, Key string
	Body           []byte
	Headers        map[string]string
	NotBefore      time.Time // in UTC and to the second, as a row has it
}

// Box is an outbox.Putter in memory, of a table with all optional columns. It may be used from many goroutines.
type Box struct {
	real *outbox.Box

	mu       sync.Mutex
	messages []Message
	ids      map[string]bool
}

var _ outbox.Putter = (*Box)(nil)

// New returns an empty Box, of the configuration that the real one will have; without one, of the zero Config.
func New(t testing.TB, cfg ...outbox.Config) *Box {
	t.Helper()
	var c outbox.Config
	if len(cfg) > 0 {
		c = cfg[0]
	}
	real, err := outbox.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &Box{real: real, ids: map[string]bool{}}
}

// Put keeps a message: at once, or when a Tx of this package commits. Any other transaction is taken as the real Box
// takes it, but its end is not noticed.
func (b *Box) Put(ctx context.Context, tx outbox.Execer, m outbox.Message) (outbox.Receipt, error) {
	receipts, err := b.PutAll(ctx, tx, []outbox.Message{m})
	if err != nil {
		return outbox.Receipt{}, err
	}
	return receipts[0], nil
}

// PutAll keeps messages in their order, or none of them.
func (b *Box) PutAll(ctx context.Context, tx outbox.Execer, messages []outbox.Message) ([]outbox.Receipt, error) {
	if err := b.real.CheckTx(tx); err != nil {
		return nil, err
	}
	kept := make([]Message, len(messages))
	for i, m := range messages {
		row, err := b.real.Row(ctx, m)
		if err != nil {
			return nil, err
		}
		if kept[i], err = read(row); err != nil {
			return nil, err
		}
	}
	into := b
	if own, ok := tx.(*Tx); ok {
		if own.done {
			return nil, sql.ErrTxDone
		}
		into = own.staged
	}
	receipts := make([]outbox.Receipt, len(kept))
	for i := range kept {
		receipts[i] = outbox.Receipt{ID: kept[i].ID, Duplicate: into != b && b.has(kept[i].ID) || !into.add(kept[i])}
	}
	return receipts, nil
}

func (b *Box) has(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ids[id]
}

// add reports false for an id that is there.
func (b *Box) add(m Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ids[m.ID] {
		return false
	}
	b.ids[m.ID] = true
	b.messages = append(b.messages, m)
	return true
}

// Messages returns what was put and committed, in order.
func (b *Box) Messages() []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.messages)
}

// Reset forgets everything.
func (b *Box) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages, b.ids = nil, map[string]bool{}
}

// Begin returns a transaction of this Box.
func (b *Box) Begin() *Tx {
	return &Tx{box: b, staged: &Box{real: b.real, ids: map[string]bool{}}}
}

// Tx is a transaction that keeps messages until it is committed. It serves one goroutine.
type Tx struct {
	box, staged *Box
	done        bool
}

// ExecContext runs nothing and says that no row was affected: business statements need a fake of their own.
func (tx *Tx) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	if tx.done {
		return nil, sql.ErrTxDone
	}
	return driver.RowsAffected(0), nil
}

// Commit hands the messages to the Box. One whose id another transaction has committed meanwhile is dropped; the real Put would
// have waited for that and said so.
func (tx *Tx) Commit() error {
	if tx.done {
		return sql.ErrTxDone
	}
	tx.done = true
	for _, m := range tx.staged.messages {
		tx.box.add(m)
	}
	return nil
}

// Rollback forgets the messages.
func (tx *Tx) Rollback() error {
	if tx.done {
		return sql.ErrTxDone
	}
	tx.done = true
	return nil
}

// read turns a row into what a test asks for.
func read(row outbox.Row) (Message, error) {
	m := Message{ID: row.MsgID, Topic: row.Topic, Key: string(row.Key), Body: row.Content}
	if row.Headers != nil {
		if err := json.Unmarshal(row.Headers, &m.Headers); err != nil {
			return Message{}, fmt.Errorf("headers of %s: %w", row.MsgID, err)
		}
	}
	if row.TraceParent != "" {
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		maps.Copy(m.Headers, map[string]string{words.HeaderTraceParent: row.TraceParent})
	}
	if row.NextRetry != "" {
		due, err := time.Parse(time.DateTime, row.NextRetry)
		if err != nil {
			return Message{}, fmt.Errorf("due time of %s: %w", row.MsgID, err)
		}
		m.NotBefore = due
	}
	return m, nil
}
