package sweeper_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
)

// A session that ends amid a batch: what was handed over is marked, and from the first row on that was not everything
// is given back.

func TestBatchEndsAtTheFirstRowThatIsNotHandedOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["orders"] = "open"
	b.broker.ends = only("m2")
	b.table.put("orders", outbox.Pending, 1, 2, 3)
	r, err := b.Pass(t.Context())
	require.ErrorIs(t, err, errClosed)
	require.Equal(t, 1, r.Sent)
	require.Equal(t, []string{"m1"}, b.broker.kafka)
	require.Equal(t, []string{"claim m1 m2 m3", "sent m1", "release m2 m3"}, b.table.done())
}

// Of several topics none is begun after that one.
func TestPassEndsWithTheSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["a"], b.gate.states["b"] = "open", "open"
	b.broker.ends = only("m1")
	b.table.put("a", outbox.Pending, 1)
	b.table.put("b", outbox.Pending, 2)
	_, err := b.Pass(t.Context())
	require.ErrorIs(t, err, errClosed)
	require.Empty(t, b.broker.kafka)
	require.Equal(t, []string{"claim m1 m2", "release m1", "release m2"}, b.table.done(), "or it would wait until its claim ends")
}

func TestDrainEndsAtTheFirstRowThatIsNotHandedOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["orders"] = "draining"
	b.broker.ends = only("m5")
	b.table.put("orders", outbox.Failed, 1, 2, 3, 4, 5, 6, 7, 8)
	_, err := b.Pass(t.Context())
	require.ErrorIs(t, err, errClosed)
	require.Equal(t, []string{"m1", "m2", "m3", "m4"}, b.broker.kafka)
	require.Equal(t, "draining", b.gate.state("orders"), "it is not handed back")
}

// The parked rows of a key in several topics are given back as due, not parked: another relay that leads by then has
// read which keys have parked rows, and does not look for these.
func TestReleaseEndsAtTheFirstRowThatIsNotHandedOver(t *testing.T) {
	t.Parallel()
	b := releaseBench(t, 1, 2)
	b.gate.states["others"] = "open"
	b.table.put("others", outbox.Pending, 3)
	b.table.rows[3].parked = 1
	ctx, cancel := context.WithCancel(t.Context())
	b.broker.ends = func(msgID string) bool {
		if msgID != "m2" {
			return false
		}
		cancel()
		return true
	}
	_, err := b.Pass(ctx)
	require.ErrorIs(t, err, errClosed)
	require.Equal(t, []string{"~m1"}, b.broker.published())
	require.Equal(t, []string{"claim parked m1 m2 m3", "sent m1", "release m2", "release m3"}, b.table.done())
}

// What the stream has held for a topic could not be sent: what the sweeper has behind its probe would pass it.
func TestNothingFollowsAProbeWhoseTopicCouldNotBeOpened(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.ending = errClosed
	b.table.put("orders", outbox.Pending, 1, 2, 3)
	_, err := b.Pass(t.Context())
	require.ErrorIs(t, err, errClosed)
	require.Equal(t, []string{"~m1"}, b.broker.kafka)
	require.Equal(t, []string{"claim m1 m2 m3", "sent m1", "release m2 m3"}, b.table.done())
}

// A stop is no reason to close a topic, which would give what the stream holds to the table.
func TestStopAmidAProbeClosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.broker.refuse = func(string) error { cancel(); return errUnreachable }
	b.table.put("orders", outbox.Pending, 1, 2)
	_, err := b.Pass(ctx)
	require.NoError(t, err)
	require.Equal(t, "probing", b.gate.state("orders"))
	require.Equal(t, []string{"claim m1 m2", "release m1 m2"}, b.table.done())
}
