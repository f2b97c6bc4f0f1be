package relay

import (
	"context"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

// What is held when a session ends stays held from the first message on that could not be sent: nothing passes it.

// refusing makes a sink refuse one message, and take all others.
func refusing(msgID string) func(*item) error {
	return func(it *item) error {
		if it.ref.MsgID == msgID {
			return errBroken
		}
		return nil
	}
}

func TestFlushEndsAtTheFirstThatIsNotSent(t *testing.T) {
	t.Parallel()
	b := newLinesBench()
	b.sink.refuse = refusing("m3")
	b.pass(t.Context(), 5)
	require.ErrorIs(t, b.probeAcked(t.Context(), b.topic), errBroken)
	require.Equal(t, []string{"m2"}, ids(b.sink.sent))
	require.Equal(t, order.Held, b.admit(itemOf(b.tracker, 6, b.topic, "k")), "what comes next does not pass it")
	require.Equal(t, order.Flushing, b.state())
}

func TestHandBackEndsAtTheFirstThatIsNotSent(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		b.sink.refuse = refusing("m2")
		b.closeAndDrain(true)
		require.True(t, b.Hold(t.Context(), "orders"))
		b.pass(t.Context(), 3)
		opened, err := b.HandBack(t.Context(), "orders")
		require.ErrorIs(t, err, errBroken)
		require.False(t, opened)
		require.Equal(t, []string{"m1"}, ids(b.sink.sent))
		b.pass(t.Context(), 1)
		advance(t, holdAtMost)
		require.Equal(t, []string{"m1"}, ids(b.sink.sent))
		require.Empty(t, b.sink.left)
	})
}

// A session that ends while the table is asked about held rows knows nothing of them: the topic is not opened as if
// none were left.
func TestFlushThatCanNotAskDoesNotOpenTheTopic(t *testing.T) {
	t.Parallel()
	b := newLinesBench()
	b.sink.blind = errBroken
	b.pass(t.Context(), 3)
	require.ErrorIs(t, b.probeAcked(t.Context(), b.topic), errBroken)
	require.Equal(t, order.Flushing, b.state())
	require.Equal(t, order.Held, b.admit(itemOf(b.tracker, 4, b.topic, "k")))
	require.Empty(t, b.sink.sent)
}

// A key that is handed back goes on holding from the first message on that could not be sent, or about which the
// table could not be asked.
func TestHeldKeyGoesOnHolding(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		room  int // of the producer
		asked bool
		sent  []string
	}{
		"Refused":  {room: 1, asked: true, sent: []string{"m1"}},
		"NotAsked": {sent: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b := newFlowBench()
				b.open(t.Context())
				slot := store.SlotOf("orders", []byte("k"))
				held := func() {
					it := b.message("k")
					it.slot, it.hasNextRetry = slot, true
					require.NoError(t, b.publish(t.Context(), it))
				}
				key := order.Name{Key: uint64(slot)}
				newLetters(b.lines, b.rows, nil, zerolog.Nop()).parked([]store.Slot{slot})
				require.True(t, b.lines.Hold(t.Context(), key))
				for range 3 {
					held()
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				b.kafka.room, b.kafka.err = tt.room, kafka.ErrClosed
				if !tt.asked {
					b.rows.fail = func(string) error { cancel(); return errBroken }
				}
				ended, err := b.lines.Open(ctx, key)
				require.Error(t, err)
				require.False(t, ended)
				b.kafka.err = nil
				held()
				require.Equal(t, tt.sent, ids(b.kafka.items()), "what comes next does not pass them")
			})
		})
	}
}
