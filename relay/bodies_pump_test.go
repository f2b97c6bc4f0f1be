package relay

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

// deadPartition is a broker with a staging partition that has no leader: each reading takes as long as readings may.
type deadPartition struct {
	*fakeBroker
	asked int
}

func (b *deadPartition) Bodies(ctx context.Context, refs []outbox.BodyRef) []kafka.Body {
	b.asked++
	timer := time.NewTimer(5 * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	bodies := make([]kafka.Body, len(refs))
	for i := range bodies {
		bodies[i].Err = sarama.ErrLeaderNotAvailable
	}
	return bodies
}

// Staged bodies that don't come close their own topic. What is behind them does not wait for each of them.
func TestBodiesThatDoNotComeHoldUpNoOtherTopic(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		dead := &deadPartition{fakeBroker: b.broker}
		b.pump.bodies = bodies{broker: dead}
		b.start(t.Context())
		began := time.Now()
		for i := range 50 {
			pdf := rowOf(uint64(2*i+1), "invoices", "k")
			pdf.Content, pdf.BodyRef = nil, "staged/0/1"
			b.reader.transactions <- assemble.NewTransaction(endAt(i+1), time.Now(), pdf, rowOf(uint64(2*i+2), "orders", "k"))
			advance(t, 2*bodyGatherTime)
		}
		advance(t, 5*time.Second)
		b.stop(t)
		assert.Less(t, time.Since(began), 12*time.Second)
		assert.Equal(t, 1, dead.asked, "the topic is closed by then")
		assert.Len(t, b.kafka.items(), 50)
		assert.Len(t, b.verdicts(), 50, "the others are left to the sweeper")
	})
}

// The topic has opened between the look at it and the row's turn: then the body is read after all.
func TestUnreadBodyOfATopicThatHasOpened(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		broker, rows := staged(1, 10)
		b.pump.bodies = bodies{broker: broker}
		c := &candidate{txn: b.tracker.Begin(endAt(1), 1), row: rows[0], unread: true}
		require.NoError(t, b.pump.row(t.Context(), c, "stream"))
		items := b.kafka.items()
		require.Len(t, items, 1)
		assert.Len(t, items[0].rec.Value, 10)
		used, _ := b.inFlight.used()
		assert.Equal(t, 1, used)
		used, _ = b.unmarked.used()
		assert.Equal(t, 1, used)
	})
}

// A row that waited for its body is given to the gate when nothing comes after it, and then the sweeper is told so.
func TestRowsThatWaitedAreAdmitted(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newPumpBench(t.Context(), t)
		broker, rows := staged(3, 10)
		b.pump.bodies = bodies{broker: broker}
		b.start(t.Context())
		for i := range rows {
			b.give(i+1, rows[i])
			advance(t, 2*bodyGatherTime)
			require.Len(t, b.kafka.items(), i+1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			end := endAt(i + 1)
			require.NoError(t, b.tracker.WaitAdmitted(ctx, end.File, end.Pos))
			cancel()
		}
		b.stop(t)
	})
}

// countedBodies remembers weakly what it has handed out.
type countedBodies struct {
	Broker
	t    *testing.T
	sent func()
	made []weak.Pointer[byte]
	most int
}

func (b *countedBodies) Bodies(_ context.Context, refs []outbox.BodyRef) []kafka.Body {
	b.sent()
	runtime.GC()
	alive := 0
	for _, p := range b.made {
		if p.Value() != nil {
			alive++
		}
	}
	b.most = max(b.most, alive)
	found := make([]kafka.Body, len(refs))
	for i := range refs {
		value := make([]byte, 64<<10)
		b.made = append(b.made, weak.Make(&value[0]))
		found[i] = kafka.Body{Value: value, MsgID: rowOf(uint64(refs[i].Offset), "", "").MsgID}
	}
	return found
}

// A replay window looks up a thousand rows at once. Their bodies must not all be in memory at once.
func TestBodiesOfTheReplayWindowAreLetGo(t *testing.T) {
	t.Parallel()
	b := newPumpBench(t.Context(), t)
	b.inFlight, b.unmarked = newWindow(10*gatherRows, 1<<30), newWindow(10*gatherRows, 1)
	b.pump.replay.over = false
	b.pump.replay.until = position.Position{File: "binlog.000001", Pos: 1 << 40}
	b.rows.found = map[outbox.Ref]store.Found{}
	broker := &countedBodies{t: t, sent: func() { // Kafka has acked everything
		for _, it := range b.kafka.items() {
			it.rec = nil
		}
	}}
	b.pump.bodies = bodies{broker: broker}
	txn := b.tracker.Begin(endAt(1), 500)
	for i := range 500 {
		row := rowOf(uint64(i), "orders", "k")
		row.Content, row.BodyRef = nil, fmt.Sprintf("staged/0/%d", i)
		b.pump.replay.add(candidate{txn: txn, row: row})
	}
	require.NoError(t, b.pump.lookUp(t.Context()))
	assert.Len(t, b.kafka.items(), 500)
	assert.LessOrEqual(t, broker.most, 2*bodyGroup)
}

// Whatever the sweeper and a flush do at the same moment, a message without a body is deferred and its topic does not
// open.
func TestBodylessMessageBesideProbesAndFlushes(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"Probe", "Flush"} {
		t.Run(other, func(t *testing.T) {
			t.Parallel()
			for range 20000 {
				b := newLinesBench()
				b.pass(t.Context(), map[string]int{"Probe": 0, "Flush": 3}[other])
				b.next++
				it := itemOf(b.tracker, b.next, b.topic, "k")
				it.rec = nil
				var both sync.WaitGroup
				both.Go(func() {
					if other == "Flush" {
						b.ackProbe(t.Context())
					} else if probe, _ := b.BeginProbe("orders"); probe {
						b.ackProbe(t.Context())
					}
				})
				both.Go(func() { b.closeBehind(b.topic, it, "no body", time.Time{}) })
				both.Wait()
				require.Contains(t, b.sink.left, it)
				require.NotContains(t, b.sink.sent, it)
				require.Contains(t, []order.State{order.Closed, order.Draining}, b.state())
			}
		})
	}
}

// Nothing is sent behind a body that does not come. So the sweeper does not ask for more of them while its claims run
// out.
func TestFillStopsAtABodyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		dead := &deadPartition{}
		_, rows := staged(500, 10)
		p := &publisher{bodies: bodies{broker: dead}}
		n, errs := p.Fill(t.Context(), rows)
		assert.Equal(t, 1, dead.asked)
		assert.Equal(t, bodyGroup, n)
		assert.Len(t, errs, n)
	})
}
