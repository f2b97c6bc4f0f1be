package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
)

// orderPaid is a body as services have them.
type orderPaid struct {
	OrderID string `json:"order_id"`
	UserID  int64  `json:"user_id"`
	Amount  int64  `json:"amount"`
	Note    string `json:"note"`
}

// costs are the messages whose cost is measured.
func costs() map[string]outbox.Message {
	encoded := json.RawMessage(`{"order_id":"4711","user_id":815,"amount":129900,"note":"paid by card, to be delivered on Tuesday"}`)
	return map[string]outbox.Message{
		"Plain": {Topic: "orders", Body: encoded},
		"Key":   {ID: "order-4711-paid", Topic: "orders", Key: "4711", Body: encoded},
		"Headers": {
			Topic: "orders", Key: "4711", Body: encoded,
			Headers: map[string]string{"tenant": "eu-1", "causation": "0191f7d2-5c1c-7a35-8b57-0d53e2f3a111"},
		},
		"Struct": {Topic: "orders", Key: "4711", Body: orderPaid{OrderID: "4711", UserID: 815, Amount: 129900, Note: "paid by card, to be delivered on Tuesday"}},
	}
}

// byHand returns the call that a service without this package would write for the message: the same statement with the same
// values, which it has as strings.
func byHand(t testing.TB, b *outbox.Box, m outbox.Message) func(ctx context.Context, tx *sql.Tx) error {
	t.Helper()
	var s script
	_, err := b.Put(t.Context(), &s, m)
	require.NoError(t, err)
	values := make([]string, len(s.args[0]))
	for i, arg := range s.args[0] {
		values[i] = fmt.Sprint(arg)
	}
	return func(ctx context.Context, tx *sql.Tx) error {
		args := make([]any, len(values))
		for i, value := range values {
			args[i] = value
		}
		_, err := tx.ExecContext(ctx, s.queries[0], args...)
		return err
	}
}

// begin opens a transaction of a database that does nothing.
func begin(t testing.TB) *sql.Tx {
	t.Helper()
	// The context of a benchmark ends before its clean-up.
	tx, err := (&noop{columns: everything}).open(t).BeginTx(context.WithoutCancel(t.Context()), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tx.Rollback()) })
	return tx
}

// TestPutAllocatesLittle holds the bound of 6 allocations beyond what the same statement costs without this package.
func TestPutAllocatesLittle(t *testing.T) {
	for name, m := range costs() {
		b, tx, ctx := box(t, outbox.Config{}), begin(t), t.Context()
		hand := byHand(t, b, m)
		var failed error
		without := testing.AllocsPerRun(1000, func() { failed = errors.Join(failed, hand(ctx, tx)) })
		with := testing.AllocsPerRun(1000, func() {
			if _, err := b.Put(ctx, tx, m); err != nil {
				failed = err
			}
		})
		require.NoError(t, failed)
		t.Logf("%s: %.0f allocations, %.0f without outbox", name, with, without)
		assert.LessOrEqual(t, with-without, 6.0, name)
	}
}

func BenchmarkPut(b *testing.B) {
	for name, m := range costs() {
		b.Run(name+"/Put", func(b *testing.B) { putMany(b, m) })
		b.Run(name+"/ByHand", func(b *testing.B) { execMany(b, m) })
	}
}

func putMany(b *testing.B, m outbox.Message) {
	bx, tx, ctx := box(b, outbox.Config{}), begin(b), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bx.Put(ctx, tx, m); err != nil {
			b.Fatal(err)
		}
	}
}

// execMany runs the same statement with the same values.
func execMany(b *testing.B, m outbox.Message) {
	hand := byHand(b, box(b, outbox.Config{}), m)
	tx, ctx := begin(b), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := hand(ctx, tx); err != nil {
			b.Fatal(err)
		}
	}
}
