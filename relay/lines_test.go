package relay

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/test/bubble"
)

// fakeSink writes down where the gate lets messages go.
type fakeSink struct {
	mu     sync.Mutex
	sent   []*item
	probed []*item
	left   []*item             // deferred
	gone   map[string]struct{} // what the sweeper sent meanwhile
	onSend func(*item)
	refuse func(*item) error // nil: all are taken
	blind  error             // why it can't be asked what is still pending
}

func (s *fakeSink) onward(ctx context.Context, it *item, way order.Way) error {
	switch way {
	case order.Send:
		return s.send(ctx, it)
	case order.Probe:
		s.probe(ctx, it)
	case order.Defer, order.Park:
		s.leave(it, way)
	case order.Held:
	}
	return nil
}

func (s *fakeSink) send(_ context.Context, it *item) error {
	if s.refuse != nil {
		if err := s.refuse(it); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.sent = append(s.sent, it)
	s.mu.Unlock()
	if s.onSend != nil {
		s.onSend(it)
	}
	return nil
}

func (s *fakeSink) probe(_ context.Context, it *item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probed = append(s.probed, it)
}

func (s *fakeSink) leave(it *item, _ order.Way) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.left, it)
}

func (s *fakeSink) stillPending(_ context.Context, items []*item) ([]*item, error) {
	if s.blind != nil {
		return nil, s.blind
	}
	return slices.DeleteFunc(slices.Clone(items), func(it *item) bool { _, gone := s.gone[it.ref.MsgID]; return gone }), nil
}

// linesBench is a gate with one topic, whose messages m1, m2, ... are admitted in order.
type linesBench struct {
	topics
	sink    *fakeSink
	topic   *line
	tracker *Tracker
	next    uint64
	woken   int // how often the sweeper was notified
}

func newLinesBench() *linesBench {
	b := &linesBench{sink: &fakeSink{}, tracker: NewTracker(startPosition)}
	b.topics = topics{newLines(order.Config{}, b.sink, func() { b.woken++ }, zerolog.Nop())}
	b.topic = b.Lines.topic("orders")
	return b
}

// pass admits n more messages and does with them what the pump would.
func (b *linesBench) pass(ctx context.Context, n int) {
	for range n {
		b.next++
		it := itemOf(b.tracker, b.next, b.topic, "k")
		_ = b.sink.onward(ctx, it, b.admit(it)) // one that is not sent is in no list
	}
}

// ackProbe acks the topic's probe, after which all that is held is taken.
func (b *linesBench) ackProbe(ctx context.Context) {
	if err := b.probeAcked(ctx, b.topic); err != nil {
		panic(err) // the sink takes all
	}
}

// handBack hands the topic back, where all that is held is taken.
func (b *linesBench) handBack(t *testing.T) bool {
	t.Helper()
	opened, err := b.HandBack(t.Context(), "orders")
	require.NoError(t, err)
	return opened
}

// closeAndDrain closes the topic with nothing on its way, and begins its drain.
func (b *linesBench) closeAndDrain(acked bool) {
	b.Close("orders", "gone", 0)
	b.Drain("orders", acked)
}

// state reads the topic's state beside the gate's timers.
func (b *linesBench) state() order.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.topic.State()
}

func (b *linesBench) settleDeferred() {
	for range b.sink.left {
		b.deferSettled(b.topic)
	}
}

func TestGateAdmits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state string
		reach func(*linesBench, context.Context)
		want  order.Way
		then  string // the state afterwards
		held  int
		left  int
	}{
		{"fresh", func(*linesBench, context.Context) {}, order.Probe, "probing", 0, 0},
		{"probing", func(b *linesBench, ctx context.Context) { b.pass(ctx, 1) }, order.Held, "probing", 1, 0},
		{"probing", func(b *linesBench, _ context.Context) { b.BeginProbe("orders") }, order.Held, "probing", 1, 0},
		{"open", func(b *linesBench, ctx context.Context) { b.pass(ctx, 1); b.ackProbe(ctx) }, order.Send, "open", 0, 0},
		{"closed", func(b *linesBench, _ context.Context) { b.Close("orders", "gone", 0) }, order.Defer, "closed", 0, 1},
		{"draining", func(b *linesBench, _ context.Context) { b.closeAndDrain(true) }, order.Defer, "draining", 0, 1},
		{"handing", func(b *linesBench, ctx context.Context) { b.closeAndDrain(true); b.Hold(ctx, "orders") }, order.Held, "handing", 1, 0},
	} {
		t.Run(tt.state, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b := newLinesBench()
				tt.reach(b, t.Context())
				require.Equal(t, tt.state, b.state().String())
				it := itemOf(b.tracker, 9, b.topic, "k")
				way := b.admit(it)
				assert.Equal(t, tt.want, way)
				require.NoError(t, b.sink.onward(t.Context(), it, way))
				assert.Equal(t, tt.then, b.state().String())
				assert.Len(t, b.topic.Holding(), tt.held)
				assert.Len(t, b.sink.left, tt.left)
			})
		})
	}
}

func TestProbeAckedSendsWhatWasHeldInOrder(t *testing.T) {
	t.Parallel()
	b := newLinesBench()
	b.pass(t.Context(), 4)
	require.Equal(t, []string{"m1"}, ids(b.sink.probed))
	require.Empty(t, b.sink.sent, "nothing goes beside a probe")
	b.sink.gone = map[string]struct{}{"m3": {}}
	b.ackProbe(t.Context())
	b.pass(t.Context(), 1)
	require.Equal(t, []string{"m2", "m4", "m5"}, ids(b.sink.sent))
}

// While the held messages are flushed the pump goes on: what it brings is sent after them.
func TestFlushTakesInWhatComesMeanwhile(t *testing.T) {
	t.Parallel()
	b := newLinesBench()
	b.pass(t.Context(), 3)
	b.sink.onSend = func(it *item) {
		if it.ref.MsgID == "m2" {
			b.pass(t.Context(), 2)
		}
	}
	b.ackProbe(t.Context())
	require.Equal(t, []string{"m2", "m3", "m4", "m5"}, ids(b.sink.sent))
	require.Equal(t, order.Open, b.state())
}

func TestRefusedProbeClosesAndDefersInOrder(t *testing.T) {
	t.Parallel()
	b := newLinesBench()
	b.pass(t.Context(), 4)
	require.True(t, b.close(b.topic, "no right to it", time.Time{}))
	require.False(t, b.close(b.topic, "still none", time.Time{}), "only the first failure is a message's own")
	b.pass(t.Context(), 1)
	require.Equal(t, []string{"m2", "m3", "m4", "m5"}, ids(b.sink.left))
	require.Empty(t, b.sink.sent)
	require.Equal(t, []string{"orders"}, b.Closed())
	require.Equal(t, []TopicStatus{{Name: "orders", State: "closed", Reason: "still none"}}, b.status())
}

func TestNextProbeAfterADeadOne(t *testing.T) {
	t.Parallel()
	b := newLinesBench()
	b.pass(t.Context(), 3)
	require.Equal(t, "m2", b.probeDead(b.topic).ref.MsgID)
	require.Equal(t, "m3", b.probeDead(b.topic).ref.MsgID)
	require.Nil(t, b.probeDead(b.topic))
	require.Equal(t, order.Fresh, b.state(), "nobody has learnt anything about the topic")
	b.pass(t.Context(), 1)
	require.Equal(t, []string{"m1", "m4"}, ids(b.sink.probed))
}

func TestSlowProbe(t *testing.T) {
	t.Parallel()
	t.Run("UnreachableHolds", func(t *testing.T) {
		t.Parallel()
		b := newLinesBench()
		b.pass(t.Context(), 1000)
		b.reached(b.topic, false)
		b.probeIsSlow(b.topic)
		require.Len(t, b.topic.Holding(), 999)
		require.Empty(t, b.sink.left, "brokers away are no reason to write to the table")
	})
	t.Run("ReachableDefers", func(t *testing.T) {
		t.Parallel()
		b := newLinesBench()
		b.pass(t.Context(), 3)
		b.reached(b.topic, true)
		b.probeIsSlow(b.topic)
		require.Equal(t, []string{"m2", "m3"}, ids(b.sink.left))
		probe, drain, wait := b.Work(time.Now())
		require.Empty(t, probe, "a probe is out already")
		require.Empty(t, drain)
		require.Equal(t, order.Settling, wait)
		b.Drain("orders", false)
		require.Equal(t, order.Closed, b.state())
	})
	t.Run("LateAckDrains", func(t *testing.T) {
		t.Parallel()
		b := slowProbe(t.Context())
		b.ackProbe(t.Context())
		require.Empty(t, b.sink.sent, "what was deferred has to go first")
		_, drain, _ := b.Work(time.Now())
		require.Equal(t, []string{"orders"}, drain)
	})
	t.Run("LateRefusal", func(t *testing.T) {
		t.Parallel()
		b := slowProbe(t.Context())
		require.False(t, b.close(b.topic, "gone", time.Time{}))
		probe, _, _ := b.Work(time.Now())
		require.Equal(t, []string{"orders"}, probe)
	})
	t.Run("LateDeath", func(t *testing.T) {
		t.Parallel()
		b := slowProbe(t.Context())
		require.Nil(t, b.probeDead(b.topic))
		probe, _, _ := b.Work(time.Now())
		require.Equal(t, []string{"orders"}, probe)
	})
}

// slowProbe is a topic that is closed because its probe takes long.
func slowProbe(ctx context.Context) *linesBench {
	b := newLinesBench()
	b.pass(ctx, 3)
	b.reached(b.topic, true)
	b.probeIsSlow(b.topic)
	return b
}

func TestFirstViolationOfAKeyIsRemembered(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newLinesBench()
		require.Empty(t, b.passed(b.topic, "k"))
		b.refusedOpen(b.topic, []byte("k"), "m1")
		b.refusedOpen(b.topic, []byte("k"), "m2")
		require.Equal(t, "m1", b.passed(b.topic, "k"))
		require.Empty(t, b.passed(b.topic, "other"))
		b.closeAndDrain(true)
		require.True(t, b.Hold(t.Context(), "orders"))
		require.True(t, b.handBack(t))
		require.Empty(t, b.passed(b.topic, "k"), "the drain has put it right")
	})
}

// TestFlushAgainstAdmit: a message that the pump brings while the probe is acked never passes one that was held.
func TestFlushAgainstAdmit(t *testing.T) {
	t.Parallel()
	for range 50 {
		b := newLinesBench()
		b.pass(t.Context(), 20)
		var group sync.WaitGroup
		group.Go(func() { b.pass(t.Context(), 100) })
		group.Go(func() { b.ackProbe(t.Context()) })
		group.Wait()
		require.Len(t, b.sink.sent, 119)
		require.True(t, slices.IsSortedFunc(b.sink.sent, byID))
	}
}

// TestHandBackAgainstAdmit: what is deferred, then held, then sent keeps its order whoever is faster.
func TestHandBackAgainstAdmit(t *testing.T) {
	t.Parallel()
	for range 50 {
		bubble.Test(t, func(t *testing.T) {
			b := newLinesBench()
			b.closeAndDrain(true)
			var group sync.WaitGroup
			group.Go(func() { b.pass(t.Context(), 100) })
			group.Go(func() {
				if !b.Hold(t.Context(), "orders") {
					return
				}
				_, _ = b.HandBack(t.Context(), "orders") // all that is held is taken
			})
			group.Go(func() {
				// The marker: it settles until the hold has what it waits for.
				for settled := 0; settled < 100; {
					b.sink.mu.Lock()
					n := len(b.sink.left)
					b.sink.mu.Unlock()
					for ; settled < n; settled++ {
						b.deferSettled(b.topic)
					}
					if b.state() == order.Open {
						return
					}
				}
			})
			group.Wait()
			all := append(slices.Clone(b.sink.left), b.sink.sent...)
			require.Len(t, all, 100)
			require.True(t, slices.IsSortedFunc(all, byID), "deferred first, then held, then straight on")
		})
	}
}

func byID(a, b *item) int { return int(a.ref.ID) - int(b.ref.ID) }

// topics are Lines whose lines are named by their topics.
type topics struct{ *Lines }

func (g topics) Close(topic, reason string, wait time.Duration) {
	g.Report(order.Name{Topic: topic}, order.Outcome{Kind: order.Closes, Reason: reason, Wait: wait})
}

func (g topics) Drain(topic string, acked bool) {
	kind := order.Empty
	if acked {
		kind = order.Drains
	}
	g.Report(order.Name{Topic: topic}, order.Outcome{Kind: kind})
}

func (g topics) ProbeLater(topic string, wait time.Duration) {
	g.Report(order.Name{Topic: topic}, order.Outcome{Kind: order.Later, Wait: wait})
}

func (g topics) Unhold(topic string) {
	g.Report(order.Name{Topic: topic}, order.Outcome{Kind: order.GivesUp})
}

func (g topics) Work(now time.Time) (probe, drain []string, wait time.Duration) {
	w := g.Lines.Work(now)
	return w.Probe, w.Drain, w.Wait
}

func (g topics) BeginProbe(topic string) (probe, isOpen bool) {
	way := g.Begin(order.Name{Topic: topic})
	return way == order.Probe, way == order.Send
}

func (g topics) Hold(ctx context.Context, topic string) bool {
	return g.Lines.Hold(ctx, order.Name{Topic: topic})
}

func (g topics) Held(topic string) map[outbox.Ref]bool {
	return g.Lines.Held(order.Name{Topic: topic})
}

func (g topics) HandBack(ctx context.Context, topic string) (bool, error) {
	return g.Open(ctx, order.Name{Topic: topic})
}

// deferSettled is what the marker reports of one deferred message.
func (g topics) deferSettled(t *line) { g.written(&item{topic: t}, order.Defer) }

// passed is the refused message that a later one of the key has passed.
func (g topics) passed(t *line, key string) string {
	return g.overtook(&item{topic: t, rec: &router.Record{Key: []byte(key)}})
}
