package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

// fakeReader gives the transactions that the test puts in, and ends with errBroken when the channel is closed.
type fakeReader struct {
	Reader
	transactions chan *assemble.Transaction
}

func (r *fakeReader) Next(ctx context.Context) (*assemble.Transaction, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case txn, ok := <-r.transactions:
		if !ok {
			return nil, errBroken
		}
		return txn, nil
	}
}

// pumpBench is a pump over a flow whose topic is open, in the replay window if the test says so.
type pumpBench struct {
	*flowBench
	pump    *pump
	reader  *fakeReader
	kicks   int
	wakes   []time.Duration
	lost    error
	started chan error
}

func newPumpBench(ctx context.Context, t *testing.T) *pumpBench {
	t.Helper()
	route, err := router.New(router.Config{Source: "test"})
	require.NoError(t, err)
	b := &pumpBench{flowBench: newFlowBench(), reader: &fakeReader{transactions: make(chan *assemble.Transaction)}, started: make(chan error, 1)}
	b.open(ctx)
	b.pump = &pump{
		server: "server", reader: b.reader, router: route, tracker: b.tracker, flow: b.flow, alarm: b,
		replay: &replay{over: true, rows: b.rows, topicOf: route.Topic, log: zerolog.Nop()},
		delay: func(nextRetry string, _ time.Time) time.Duration {
			d, err := time.ParseDuration(nextRetry)
			require.NoError(t, err)
			return d
		},
		check: func() error { return b.lost },
	}
	return b
}

func (b *pumpBench) Expect() { b.kicks++ }

func (b *pumpBench) WakeIn(d time.Duration) { b.wakes = append(b.wakes, d) }

func (b *pumpBench) start(ctx context.Context) { go func() { b.started <- b.pump.run(ctx) }() }

// give hands the n-th transaction to the pump and waits until the pump is idle.
func (b *pumpBench) give(n int, rows ...outbox.Row) {
	b.reader.transactions <- assemble.NewTransaction(endAt(n), time.Now(), rows...)
	synctest.Wait()
}

// stop ends the reader and with it the pump.
func (b *pumpBench) stop(t *testing.T) {
	t.Helper()
	close(b.reader.transactions)
	require.ErrorIs(t, <-b.started, errBroken)
}

func TestPumpSendsRowsInOrderWithTheirPosition(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		b.start(t.Context())
		b.give(1, rowOf(1, "orders", "a"), rowOf(2, "orders", "b"))
		b.give(2)
		b.give(3, rowOf(3, "orders", "a"))
		b.stop(t)
		items := b.kafka.items()
		require.Equal(t, []string{"m1", "m2", "m3"}, ids(items))
		require.Equal(t, "server/binlog.000001:104/2", headerOf(items[1].rec, "outbox_position"))
		require.Equal(t, "server/binlog.000001:304/1", headerOf(items[2].rec, "outbox_position"))
		require.Equal(t, 3, b.tracker.Open())
		require.InDelta(t, 2, value(t, b.metrics.Transactions.WithLabelValues("committed")), 0)
	})
}

func headerOf(rec *router.Record, key string) string {
	for _, h := range rec.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

func TestDelayedRowsAreTheSweepers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		b.start(t.Context())
		delayed, due := rowOf(1, "orders", "a"), rowOf(2, "orders", "a")
		delayed.NextRetry, due.NextRetry = "90s", "-1s"
		b.give(1, delayed, due)
		b.stop(t)
		require.Equal(t, []time.Duration{90 * time.Second}, b.wakes)
		items := b.kafka.items()
		require.Equal(t, []string{"m2"}, ids(items))
		require.True(t, items[0].hasNextRetry, "the sweeper may have seen it first")
		items[0].txn.Settle(1)
		require.Zero(t, b.tracker.Open(), "the delayed row holds no checkpoint back")
	})
}

func TestRefusedRowIsADeadLetter(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		b.start(t.Context())
		b.give(1, rowOf(1, "bad topic", "a"), rowOf(2, "orders", "a"))
		b.stop(t)
		require.Equal(t, []string{"dead m1"}, b.verdicts())
		require.Equal(t, []string{"m2"}, ids(b.kafka.items()))
		require.InDelta(t, 1, value(t, b.metrics.Dead.WithLabelValues("bad topic", string(words.RefusedTopicInvalid))), 0)
	})
}

func TestPumpKicksTheSweeperAfterTheTransaction(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		b.start(t.Context())
		txn := assemble.NewTransaction(endAt(1), time.Now())
		txn.Kick, txn.Missed = true, map[string]int{"xa": 2}
		b.reader.transactions <- txn
		b.stop(t)
		require.Equal(t, 1, b.kicks)
		require.InDelta(t, 2, value(t, b.metrics.StreamSkipped.WithLabelValues("xa")), 0)
	})
}

func TestPumpSendsNothingWithoutTheLock(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		b.lost = ErrLockLost
		b.start(t.Context())
		b.give(1, rowOf(1, "orders", "a"))
		require.ErrorIs(t, <-b.started, ErrLockLost)
		require.Empty(t, b.kafka.items())
	})
}

// inWindow puts the pump into a replay window that ends at the n-th transaction.
func (b *pumpBench) inWindow(n int) {
	end := endAt(n)
	b.pump.replay.over = false
	b.pump.replay.until = position.Position{File: end.File, Pos: end.Pos}
}

func TestReplayWindowAsksOnceForManyRows(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		b.inWindow(3)
		rows := []outbox.Row{rowOf(1, "orders", "a"), rowOf(2, "orders", "b"), rowOf(3, "orders", "a"), rowOf(4, "orders", "a")}
		b.rows.found = map[outbox.Ref]store.Found{
			rows[0].Ref(): {Status: outbox.Sent},
			rows[1].Ref(): {Status: outbox.Failed},
			rows[2].Ref(): {Status: outbox.Pending},
		}
		b.pump.replay.tail = knowing("orders", "m3")
		b.start(t.Context())
		b.give(1, rows[0], rows[1])
		b.give(2, rows[2])
		require.Empty(t, b.rows.done())
		b.give(3, rows[3]) // the window's end
		require.Equal(t, []string{"lookup m1 m2 m3 m4"}, b.rows.done())
		b.give(4, rowOf(5, "orders", "a"))
		b.stop(t)
		require.Len(t, b.rows.done(), 1, "nothing is asked outside the window")
		items := b.kafka.items()
		require.Equal(t, []string{"m4", "m5"}, ids(items))
		require.Equal(t, []string{words.OriginReplay, words.OriginStream}, []string{items[0].origin, items[1].origin})
		require.Equal(t, []string{"sent m3"}, b.verdicts(), "published before, and marked now")
		require.InDelta(t, 1, value(t, b.metrics.Suppressed.WithLabelValues(words.SuppressedByStatus)), 0)
		require.InDelta(t, 1, value(t, b.metrics.Suppressed.WithLabelValues(words.SuppressedByTail)), 0)
		require.Equal(t, 3, b.tracker.Open(), "the first transaction is settled, m3 waits for its mark")
	})
}

func TestReplayedRowsDoNotWaitLongForOthers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		b.inWindow(9)
		b.start(t.Context())
		b.give(1, rowOf(1, "orders", "a"))
		advance(t, gatherTime)
		require.Equal(t, []string{"m1"}, ids(b.kafka.items()))
		advance(t, time.Hour)
		b.give(2, rowOf(2, "orders", "a"))
		advance(t, gatherTime)
		b.stop(t)
		require.Equal(t, []string{"lookup m1", "lookup m2"}, b.rows.done())
	})
}

func TestFullReplayBatchIsLookedUpInsideATransaction(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		b.inFlight = newWindow(10*gatherRows, 1<<30)
		b.unmarked = newWindow(10*gatherRows, 1)
		b.inWindow(1)
		b.start(t.Context())
		rows := make([]outbox.Row, gatherRows+1)
		for i := range rows {
			rows[i] = rowOf(uint64(i+1), "orders", "a")
		}
		b.give(1, rows...)
		b.stop(t)
		require.Len(t, b.rows.done(), 2)
		require.Len(t, b.kafka.items(), gatherRows+1)
	})
}

func TestPumpEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		b.inWindow(9)
		ctx, cancel := context.WithCancel(t.Context())
		b.start(ctx)
		b.give(1, rowOf(1, "orders", "a"))
		cancel()
		require.ErrorIs(t, <-b.started, context.Canceled)
	})
}
