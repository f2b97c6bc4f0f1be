package relay

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
)

// A message that has no body closes its topic, and goes to the table behind everything that the gate holds.
func TestBodylessMessageInEachState(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state string
		reach func(*linesBench, context.Context)
		left  []string // deferred, in order
		then  order.State
	}{
		{"Fresh", func(*linesBench, context.Context) {}, []string{"m1"}, order.Closed},
		{"Probing", func(b *linesBench, ctx context.Context) { b.pass(ctx, 3) }, []string{"m2", "m3", "m4"}, order.Closed},
		{"Open", func(b *linesBench, ctx context.Context) { b.pass(ctx, 1); b.ackProbe(ctx) }, []string{"m2"}, order.Closed},
		{"Closed", func(b *linesBench, ctx context.Context) { b.Close("orders", "gone", 0); b.pass(ctx, 1) }, []string{"m1", "m2"}, order.Closed},
		{"Draining", func(b *linesBench, ctx context.Context) { b.closeAndDrain(true); b.pass(ctx, 1) }, []string{"m1", "m2"}, order.Draining},
		{"Handing", func(b *linesBench, ctx context.Context) {
			b.closeAndDrain(true)
			require.True(t, b.Hold(ctx, "orders"))
			b.pass(ctx, 2)
		}, []string{"m1", "m2", "m3"}, order.Draining},
	} {
		t.Run(tt.state, func(t *testing.T) {
			t.Parallel()
			b := newLinesBench()
			tt.reach(b, t.Context())
			b.next++
			b.closeBehind(b.topic, itemOf(b.tracker, b.next, b.topic, "k"), "no body", time.Time{})
			assert.Equal(t, tt.left, ids(b.sink.left))
			assert.Equal(t, tt.then, b.state())
			b.pass(t.Context(), 1)
			assert.Len(t, b.sink.left, len(tt.left)+1, "nothing passes it")
		})
	}
}

// The probe that was out when a message without a body came is acked: what waits in the table goes first.
func TestProbeAckedBehindABodylessMessage(t *testing.T) {
	t.Parallel()
	b := newLinesBench()
	b.pass(t.Context(), 2)
	b.next++
	b.closeBehind(b.topic, itemOf(b.tracker, b.next, b.topic, "k"), "no body", time.Time{})
	b.ackProbe(t.Context())
	assert.Equal(t, order.Draining, b.state())
	assert.Equal(t, []string{"m2", "m3"}, ids(b.sink.left))
}

// bodyBroker holds staged bodies by their offset.
type bodyBroker struct {
	Broker
	bodies map[int64]kafka.Body
	asked  []int
}

func (b *bodyBroker) Bodies(_ context.Context, refs []outbox.BodyRef) []kafka.Body {
	b.asked = append(b.asked, len(refs))
	found := make([]kafka.Body, len(refs))
	for i, ref := range refs {
		found[i] = b.bodies[ref.Offset]
	}
	return found
}

func staged(n int, size int) (*bodyBroker, []outbox.Row) {
	b := &bodyBroker{bodies: make(map[int64]kafka.Body)}
	rows := make([]outbox.Row, n)
	for i := range rows {
		rows[i] = rowOf(uint64(i), "orders", "k")
		rows[i].Content, rows[i].BodyRef = nil, fmt.Sprintf("staged/0/%d", i)
		b.bodies[int64(i)] = kafka.Body{Value: make([]byte, size), MsgID: rows[i].MsgID}
	}
	return b, rows
}

func TestBodyThatIsNotTheRows(t *testing.T) {
	t.Parallel()
	b, rows := staged(3, 10)
	b.bodies[1] = kafka.Body{Value: []byte("x"), MsgID: "another"}
	rows[2].BodyRef = "nonsense"
	p := &publisher{bodies: bodies{broker: b}}
	n, errs := p.Fill(t.Context(), rows)
	require.Equal(t, 3, n)
	require.NoError(t, errs[0])
	assert.Len(t, rows[0].Content, 10)
	require.ErrorIs(t, errs[1], kafka.ErrBodyGone)
	require.ErrorIs(t, errs[2], errBadBodyRef)
	for _, err := range errs[1:] {
		assert.Equal(t, retry.Never, classify(err))
	}
	assert.Equal(t, "bad_body_ref", reasonOf(errs[2]))
	assert.Equal(t, "body_gone", reasonOf(errs[1]))
}

// Large bodies are read a few at a time, and no more of them at once than may be in memory together.
func TestFillIsBounded(t *testing.T) {
	t.Parallel()
	b, rows := staged(200, 1<<20)
	p := &publisher{bodies: bodies{broker: b}}
	n, errs := p.Fill(t.Context(), rows)
	assert.Equal(t, 64, n)
	assert.Len(t, errs, n)
	n, _ = p.Fill(t.Context(), rows[n:])
	assert.Equal(t, 32, n)
	assert.Equal(t, []int{64, 8, 8, 8, 8}, b.asked)
}
