package outboxtest_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/outbox/outboxtest"
)

func TestNothingBeforeTheCommit(t *testing.T) {
	t.Parallel()
	box := outboxtest.New(t)
	tx := box.Begin()
	receipt, err := box.Put(t.Context(), tx, outbox.Message{Topic: "orders", Body: 1})
	require.NoError(t, err)
	assert.Len(t, receipt.ID, 36)
	outboxtest.RequireNone(t, box)
	require.NoError(t, tx.Commit())
	m := outboxtest.RequireMessage(t, box, outbox.Message{ID: receipt.ID})
	assert.Equal(t, "1", string(m.Body))

	_, err = box.Put(t.Context(), tx, outbox.Message{Topic: "orders", Body: 2})
	require.ErrorIs(t, err, sql.ErrTxDone)
	require.ErrorIs(t, tx.Rollback(), sql.ErrTxDone)
	require.ErrorIs(t, tx.Commit(), sql.ErrTxDone)
	_, err = tx.ExecContext(t.Context(), "DELETE FROM t")
	require.ErrorIs(t, err, sql.ErrTxDone)
}

func TestRollbackForgets(t *testing.T) {
	t.Parallel()
	box := outboxtest.New(t)
	tx := box.Begin()
	_, err := tx.ExecContext(t.Context(), "UPDATE orders SET paid = 1")
	require.NoError(t, err)
	_, err = box.PutAll(t.Context(), tx, []outbox.Message{{Topic: "a", Body: 1}, {Topic: "b", Body: 2}})
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	outboxtest.RequireNone(t, box)
}

func TestDuplicatesAreTold(t *testing.T) {
	t.Parallel()
	box, m := outboxtest.New(t), outbox.Message{ID: "order-1-paid", Topic: "orders", Body: 1}
	tx := box.Begin()
	for i, want := range []bool{false, true} {
		receipt, err := box.Put(t.Context(), tx, m)
		require.NoError(t, err)
		assert.Equal(t, outbox.Receipt{ID: m.ID, Duplicate: want}, receipt, i)
	}
	require.NoError(t, tx.Commit())
	receipt, err := box.Put(t.Context(), box.Begin(), m)
	require.NoError(t, err)
	assert.True(t, receipt.Duplicate)
	assert.Len(t, box.Messages(), 1)
	box.Reset()
	outboxtest.RequireNone(t, box)
}

// TestItRefusesWhatTheRealOneRefuses: a test in memory must not hide what fails in production.
func TestItRefusesWhatTheRealOneRefuses(t *testing.T) {
	t.Parallel()
	box := outboxtest.New(t, outbox.Config{Limits: outbox.Limits{Body: 10}})
	tx := box.Begin()
	_, err := box.Put(t.Context(), tx, outbox.Message{Topic: "orders", Body: "more than ten"})
	require.ErrorIs(t, err, outbox.ErrInvalid)
	_, err = box.Put(t.Context(), nil, outbox.Message{Topic: "orders", Body: 1})
	require.ErrorIs(t, err, outbox.ErrNoTx)
	_, err = box.PutAll(t.Context(), &sql.DB{}, []outbox.Message{{Topic: "orders", Body: 1}})
	require.ErrorIs(t, err, outbox.ErrNoTx)
	_, err = box.PutAll(t.Context(), tx, []outbox.Message{{Topic: "orders", Body: 1}, {Topic: "no topic", Body: 1}})
	require.ErrorIs(t, err, outbox.ErrInvalid)
	require.NoError(t, tx.Commit())
	outboxtest.RequireNone(t, box)
}

// witness notes a failure instead of failing.
type witness struct {
	testing.TB
	text string
}

func (w *witness) Helper() {}

func (w *witness) Fatalf(format string, args ...any) {
	w.text = fmt.Sprintf(format, args...)
	panic(w)
}

// fails returns what a check of the box tells.
func fails(t *testing.T, check func(t testing.TB)) (text string) {
	t.Helper()
	w := &witness{TB: t}
	defer func() {
		if p := recover(); p != nil && p != any(w) {
			panic(p)
		}
		text = w.text
		assert.NotEmpty(t, text, "the check passed")
	}()
	check(w)
	return ""
}

func TestRequireMessage(t *testing.T) {
	t.Parallel()
	trace := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	box := outboxtest.New(t, outbox.Config{TraceParent: func(context.Context) string { return trace }})
	due := time.Now().Add(time.Hour)
	put := outbox.Message{
		ID: "i", Topic: "orders", Key: "k", Body: json.RawMessage(`{"a": 1, "b": [2, 12345678901234567890]}`),
		Headers: map[string]string{"tenant": "eu", "x": ""}, NotBefore: due,
	}
	_, err := box.Put(t.Context(), box.Begin(), put)
	require.NoError(t, err)
	tx := box.Begin()
	_, err = box.Put(t.Context(), tx, put)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	for name, want := range map[string]outbox.Message{
		"Nothing": {}, "Topic": {Topic: "orders"}, "ID": {ID: "i"}, "Key": {Key: "k"}, "NotBefore": {NotBefore: due},
		"Header": {Headers: map[string]string{"tenant": "eu"}}, "EmptyHeader": {Headers: map[string]string{"x": ""}},
		"Trace": {Headers: map[string]string{"traceparent": trace}},
		"Body":  {Body: []byte(`{"b":[2,12345678901234567890],"a":1}`)},
		"All":   put,
	} {
		got := outboxtest.RequireMessage(t, box, want)
		assert.Equal(t, "i", got.ID, name)
	}
	for name, want := range map[string]outbox.Message{
		"Topic": {Topic: "other"}, "ID": {ID: "j"}, "Key": {Topic: "orders", Key: "l"}, "NotBefore": {NotBefore: due.Add(time.Second)},
		"Header": {Headers: map[string]string{"tenant": "us"}}, "NoHeader": {Headers: map[string]string{"none": ""}},
		"Body": {Body: map[string]int{"a": 1}}, "Digits": {Body: []byte(`{"a":1,"b":[2,12345678901234567891]}`)},
		"Text": {Body: []byte(`<a/>`)},
	} {
		text := fails(t, func(t testing.TB) { outboxtest.RequireMessage(t, box, want) })
		assert.Contains(t, text, `topic "orders" id "i" key "k"`, name)
	}
	assert.Contains(t, fails(t, func(t testing.TB) { outboxtest.RequireMessage(t, box, outbox.Message{Body: func() {}}) }), "the wanted body")
	assert.Contains(t, fails(t, func(t testing.TB) { outboxtest.RequireMessage(t, outboxtest.New(t), put) }), "put were: none")
}

func TestRequireNone(t *testing.T) {
	t.Parallel()
	box := outboxtest.New(t, outbox.Config{Text: true})
	tx := box.Begin()
	_, err := box.Put(t.Context(), tx, outbox.Message{Topic: "orders", Body: []byte("<a/>")})
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	outboxtest.RequireMessage(t, box, outbox.Message{Body: []byte("<a/>")})
	outboxtest.RequireNone(t, box, "points", "mail")
	assert.Contains(t, fails(t, func(t testing.TB) { outboxtest.RequireNone(t, box) }), `topic "orders"`)
	assert.Contains(t, fails(t, func(t testing.TB) { outboxtest.RequireNone(t, box, "mail", "orders") }), `topic "orders"`)
}
