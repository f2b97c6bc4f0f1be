package report_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox/report"
)

func TestEncodeAndDecode(t *testing.T) {
	t.Parallel()
	want := report.Report{Source: "shop", Group: "points", Topic: "orders", MsgIDs: []string{"a", "é\"\\", "<日本>"}}
	encoded, err := want.Encode()
	require.NoError(t, err)
	got, err := report.Decode(encoded)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	short, err := report.Decode([]byte(`{"msg_ids":["a"],"added_later":{"x":[1]}}`))
	require.NoError(t, err, "what nobody knows is passed over")
	assert.Equal(t, report.Report{MsgIDs: []string{"a"}}, short)
}

func TestDecodeRefusesJunk(t *testing.T) {
	t.Parallel()
	secret := "SECRET-7"
	for name, data := range map[string]string{
		"nothing": "", "null": "null", "text": `"` + secret + `"`, "array": `["` + secret + `"]`, "cut": `{"msg_ids":["` + secret, "number id": `{"msg_ids":[7]}`,
		"no ids": `{"group":"` + secret + `"}`, "empty ids": `{"msg_ids":[]}`, "empty id": `{"msg_ids":["` + secret + `",""]}`, "two": `{"msg_ids":["a"]}{"msg_ids":["b"]}`,
		"long id": `{"msg_ids":["` + strings.Repeat("x", report.MaxIDBytes+1) + `"]}`, "long group": `{"group":"` + strings.Repeat("x", report.MaxName+1) + `","msg_ids":["a"]}`,
		"zero group": `{"group":"\u0000","msg_ids":["a"]}`, "large": strings.Repeat(" ", report.MaxBytes) + "{}", "deep": strings.Repeat(`{"msg_ids":`, 20000),
		"many": `{"msg_ids":["a"` + strings.Repeat(`,"a"`, report.MaxIDs) + `]}`, "binary": "\xff\xfe\x00",
	} {
		_, err := report.Decode([]byte(data))
		require.ErrorIs(t, err, report.ErrInvalid, name)
		assert.NotContains(t, err.Error(), secret, name)
	}
}

func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	t.Parallel()
	for _, r := range []report.Report{{}, {MsgIDs: []string{""}}, {MsgIDs: []string{"\xff"}}, {Group: "\xff", MsgIDs: []string{"a"}}, {MsgIDs: make([]string, report.MaxIDs+1)}} {
		_, err := r.Encode()
		require.ErrorIs(t, err, report.ErrInvalid)
	}
	large := report.Report{MsgIDs: slices.Repeat([]string{strings.Repeat("x", report.MaxIDBytes)}, 3000)}
	_, err := large.Encode()
	require.ErrorIs(t, err, report.ErrInvalid)
	n := 0
	for _, part := range large.Split() {
		_, err := part.Encode()
		require.NoError(t, err)
		n += len(part.MsgIDs)
	}
	assert.Equal(t, 3000, n)
}

// Whatever comes, Decode returns a report within the bounds or says that it is none.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"group":"points","msg_ids":["a"]}`))
	f.Add([]byte(`{"msg_ids":[null,"\ud800"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := report.Decode(data)
		if err != nil {
			require.ErrorIs(t, err, report.ErrInvalid)
			return
		}
		require.NoError(t, r.Validate())
		again, err := json.Marshal(r)
		require.NoError(t, err)
		back, err := report.Decode(again)
		require.NoError(t, err)
		require.Equal(t, r, back)
	})
}

// box is a sender that remembers and fails on demand.
type box struct {
	mu   sync.Mutex
	sent []report.Report
	fail error
}

func (b *box) Send(_ context.Context, r report.Report) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	r.MsgIDs = slices.Clone(r.MsgIDs)
	b.sent = append(b.sent, r)
	return nil
}

func (b *box) set(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

func (b *box) ids() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.sent {
		all = append(all, r.MsgIDs...)
	}
	slices.Sort(all)
	return all
}

func TestBatchSendsFullOnesByItself(t *testing.T) {
	t.Parallel()
	var to box
	batch := report.NewBatch("points", 3, &to)
	for i := range 7 {
		require.NoError(t, batch.Add(t.Context(), "shop", "orders", fmt.Sprint(i)))
	}
	require.NoError(t, batch.Add(t.Context(), "shop", "bills", "x"))
	assert.Equal(t, []report.Report{
		{Source: "shop", Group: "points", Topic: "orders", MsgIDs: []string{"0", "1", "2"}},
		{Source: "shop", Group: "points", Topic: "orders", MsgIDs: []string{"3", "4", "5"}},
	}, to.sent)
	require.NoError(t, batch.Flush(t.Context()))
	assert.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "x"}, to.ids())
	require.NoError(t, batch.Flush(t.Context()))
	assert.Len(t, to.sent, 4, "nothing is nothing to send")
}

// What could not be sent is not lost: the offsets are not committed until Flush returns nil.
func TestBatchKeepsWhatCouldNotBeSent(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	to := box{fail: away}
	batch := report.NewBatch("points", 2, &to)
	require.NoError(t, batch.Add(t.Context(), "", "orders", "a"))
	require.ErrorIs(t, batch.Add(t.Context(), "", "orders", "b"), away)
	require.ErrorIs(t, batch.Add(t.Context(), "", "orders", "c"), away)
	require.ErrorIs(t, batch.Flush(t.Context()), away)
	require.ErrorIs(t, batch.Add(t.Context(), "", "orders", ""), report.ErrInvalid, "it must not spoil the others")
	to.set(nil)
	require.NoError(t, batch.Flush(t.Context()))
	assert.Equal(t, []string{"a", "b", "c"}, to.ids())
}

// A Flush waits for another one that is sending, or its caller would commit offsets of messages that are not reported.
func TestBatchFlushWaitsForAnother(t *testing.T) {
	t.Parallel()
	sending, proceed := make(chan struct{}), make(chan struct{})
	batch := report.NewBatch("points", 10, report.SenderFunc(func(context.Context, report.Report) error {
		close(sending)
		<-proceed
		return nil
	}))
	require.NoError(t, batch.Add(t.Context(), "", "orders", "a"))
	first, second := make(chan error, 1), make(chan error, 1) // size 1: results that nobody may be waiting for
	go func() { first <- batch.Flush(t.Context()) }()
	<-sending
	go func() { second <- batch.Flush(t.Context()) }()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, batch.Flush(canceled), context.Canceled)
	select {
	case err := <-second:
		require.NoError(t, err)
		t.Error("the second Flush has returned while the first one is sending")
	default:
	}
	close(proceed)
	require.NoError(t, <-first)
	require.NoError(t, <-second)
}

func ExampleBatch() {
	// The producer is whatever client the consumer has.
	produce := func(_ context.Context, topic string, value []byte) error {
		fmt.Println(topic, string(value))
		return nil
	}
	batch := report.NewBatch("points", 0, report.SenderFunc(func(ctx context.Context, r report.Report) error {
		value, err := r.Encode()
		if err != nil {
			return err
		}
		return produce(ctx, "outbox.acks", value)
	}))
	ctx := context.Background()
	for _, id := range []string{"8f14", "8f15"} { // of the records that were handled
		if err := batch.Add(ctx, "default", "order-events", id); err != nil {
			fmt.Println(err)
		}
	}
	if err := batch.Flush(ctx); err != nil { // before the offsets are committed
		fmt.Println(err)
	}
	// Output: outbox.acks {"source":"default","group":"points","topic":"order-events","msg_ids":["8f14","8f15"]}
}
