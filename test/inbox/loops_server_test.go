//go:build !unit

package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/inbox/kgoinbox"
	"example.com/outbox-relay/inbox/saramainbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// adapters are the loops; each test runs on both.
var adapters = map[string]func(ctx context.Context, s *scene, handler inbox.Handler, policy inbox.Policy) error{
	"sarama": func(ctx context.Context, s *scene, handler inbox.Handler, policy inbox.Policy) error {
		return saramainbox.Run(ctx, s.in, handler, saramainbox.Config{Brokers: s.kafka.Brokers, Topics: []string{s.topic}, Policy: policy}, logTo(s.t))
	},
	"kgo": func(ctx context.Context, s *scene, handler inbox.Handler, policy inbox.Policy) error {
		return kgoinbox.Run(ctx, s.in, handler, kgoinbox.Config{
			Client: []kgo.Opt{kgo.SeedBrokers(s.kafka.Brokers...)}, Topics: []string{s.topic}, Policy: policy,
		}, logTo(s.t))
	},
}

func logTo(t *testing.T) zerolog.Logger {
	t.Helper()
	return zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel)
}

// member is one running loop.
type member struct {
	t      *testing.T
	stop   context.CancelFunc
	ended  chan struct{}
	err    error // readable once ended is closed
	events [6]atomic.Int32
}

func (m *member) seen(o inbox.Outcome) int { return int(m.events[o].Load()) }

// start runs a member of the scene's group until the test ends or it is stopped.
func (s *scene) start(adapter string, handler inbox.Handler, change func(*inbox.Policy)) *member {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	m := &member{t: s.t, stop: cancel, ended: make(chan struct{})}
	policy := inbox.Policy{
		DeadLetterTopic: s.dead, Grace: 10 * time.Second, Retry: retry.Policy{Backoff: []time.Duration{10 * time.Millisecond}, MaxRetries: 2},
		Observe: func(e inbox.Event) { m.events[e.Outcome].Add(1) },
	}
	if change != nil {
		change(&policy)
	}
	go func() {
		defer close(m.ended)
		m.err = adapters[adapter](ctx, s, handler, policy)
	}()
	s.t.Cleanup(func() { cancel(); <-m.ended })
	return m
}

// wait returns what Run returned.
func (m *member) wait() error {
	m.t.Helper()
	select {
	case <-m.ended:
		return m.err
	case <-time.After(limit):
		require.Fail(m.t, "the loop did not end")
		return nil
	}
}

// onBoth runs the test with both adapters.
func onBoth(t *testing.T, partitions int, test func(s *scene, adapter string)) {
	t.Helper()
	for adapter := range adapters {
		t.Run(adapter, func(t *testing.T) {
			t.Parallel()
			test(newScene(t, rig.Kafka(t), partitions), adapter)
		})
	}
}

func TestEachMessageOnceInOrderAndCommitted(t *testing.T) {
	t.Parallel()
	onBoth(t, 3, func(s *scene, adapter string) {
		s.produce(300)
		m := s.start(adapter, point, nil)
		s.handled(300, limit)
		s.produce(60)
		s.handled(360, limit)
		until(s, "the copies were told", func() bool { return m.seen(inbox.OutcomeDuplicate) == 18 })
		m.stop()
		require.NoError(s.t, m.wait())
		s.exactlyOnce()
		assert.Equal(s.t, 360, m.seen(inbox.OutcomeHandled))
		for p := range 3 {
			assert.Equal(s.t, int64(126), s.committed(p), "partition %d", p)
		}
	})
}

func TestPoisonMessagesBecomeDeadLettersAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, func(s *scene, adapter string) {
		s.produce(5)
		bad := s.record("bad", 0)
		worse := s.record("worse", 0)
		require.NoError(s.t, s.client.ProduceSync(s.t.Context(), bad, worse, s.record("", 0)).FirstErr())
		s.produce(5)
		m := s.start(adapter, func(ctx context.Context, tx *sql.Tx, d *inbox.Delivery) error {
			if err := point(ctx, tx, d); err != nil {
				return err
			}
			switch d.ID {
			case "bad":
				return errors.New("not today")
			case "worse":
				return inbox.Permanent(errors.New("never"))
			}
			return nil
		}, nil)
		s.handled(10, limit)
		letters := s.read(s.dead, 3)
		m.stop()
		require.NoError(s.t, m.wait())
		s.exactlyOnce()
		for i, want := range []struct{ id, key, offset, reason, attempts string }{
			{"bad", "bad", "5", inbox.ReasonSpent, "3"},
			{"worse", "worse", "6", inbox.ReasonPermanent, "1"},
			{"", "", "7", inbox.ReasonNoID, "0"},
		} {
			letter := letters[i]
			got := struct{ id, key, offset, reason, attempts string }{
				headerOf(letter, inbox.HeaderMsgID), string(letter.Key), headerOf(letter, inbox.HeaderDeadOffset),
				headerOf(letter, inbox.HeaderDeadReason), headerOf(letter, inbox.HeaderDeadAttempts),
			}
			assert.Equal(s.t, want, got)
			assert.Equal(s.t, s.topic, headerOf(letter, inbox.HeaderDeadTopic))
			assert.Equal(s.t, s.group, headerOf(letter, inbox.HeaderDeadGroup))
			assert.JSONEq(s.t, `{"id":"`+want.id+`"}`, string(letter.Value))
		}
		assert.Equal(s.t, int64(13), s.committed(0), "dead letters are passed")
	})
}

func TestStopPolicyCommitsWhatIsBeforeTheMessage(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, func(s *scene, adapter string) {
		s.produce(5)
		require.NoError(s.t, s.client.ProduceSync(s.t.Context(), s.record("bad", 0)).FirstErr())
		broken := true
		handler := func(ctx context.Context, tx *sql.Tx, d *inbox.Delivery) error {
			if d.ID == "bad" && broken {
				return inbox.Permanent(errors.New("never"))
			}
			return point(ctx, tx, d)
		}
		m := s.start(adapter, handler, func(p *inbox.Policy) { p.Poison = inbox.Stop })
		var stopped *inbox.Stopped
		require.ErrorAs(s.t, m.wait(), &stopped)
		assert.Equal(s.t, int64(5), stopped.Offset)
		assert.Equal(s.t, int64(5), s.committed(0))
		broken = false
		s.expected["bad"] = true
		m = s.start(adapter, handler, nil)
		s.handled(6, limit)
		m.stop()
		require.NoError(s.t, m.wait())
		s.exactlyOnce()
	})
}

// SIGTERM in the middle of a handler: it finishes, its offset is committed, and nothing new is begun.
func TestStoppingLetsTheRunningHandlerFinish(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, func(s *scene, adapter string) {
		s.produce(6)
		entered, leave := make(chan struct{}), make(chan struct{})
		m := s.start(adapter, func(ctx context.Context, tx *sql.Tx, d *inbox.Delivery) error {
			if d.Offset == 2 {
				close(entered)
				<-leave
			}
			return point(ctx, tx, d)
		}, nil)
		<-entered
		m.stop()
		close(leave)
		require.NoError(s.t, m.wait())
		assert.Equal(s.t, 3, s.effects())
		assert.Equal(s.t, int64(3), s.committed(0))
		m = s.start(adapter, point, nil)
		s.handled(6, limit)
		m.stop()
		require.NoError(s.t, m.wait())
		s.exactlyOnce()
		assert.Zero(s.t, m.seen(inbox.OutcomeDuplicate))
	})
}

// Members come and go while messages flow. What a member has done is committed before its partitions are given to another, so that
// nothing is even delivered twice but the copies.
func TestRebalancesHandOverInOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, 4, func(s *scene, adapter string) {
		s.produce(1000)
		first := s.start(adapter, point, nil)
		s.handled(100, limit)
		second := s.start(adapter, point, nil)
		until(s, "the second member works", func() bool { return second.seen(inbox.OutcomeHandled) > 20 || s.effects() == 1000 })
		s.produce(1000)
		first.stop()
		require.NoError(s.t, first.wait())
		s.handled(2000, limit)
		until(s, "the copies were told", func() bool {
			return first.seen(inbox.OutcomeDuplicate)+second.seen(inbox.OutcomeDuplicate) >= 100
		})
		second.stop()
		require.NoError(s.t, second.wait())
		s.exactlyOnce()
		assert.Equal(s.t, 100, first.seen(inbox.OutcomeDuplicate)+second.seen(inbox.OutcomeDuplicate), "the copies only")
		assert.Equal(s.t, 2000, first.seen(inbox.OutcomeHandled)+second.seen(inbox.OutcomeHandled))
	})
}

// A member that waits an hour before it tries a message again gives its partitions back at once.
func TestARevocationEndsTheWaitForTheNextAttempt(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, func(s *scene, adapter string) {
		s.produce(20)
		var failing sync.Map
		first := s.start(adapter, func(_ context.Context, _ *sql.Tx, d *inbox.Delivery) error {
			failing.Store(d.Partition, true)
			return inbox.RetryAfter(time.Hour, errors.New("not now"))
		}, nil)
		until(s, "both partitions wait", func() bool { return first.seen(inbox.OutcomeFailed) == 2 })
		second := s.start(adapter, point, nil)
		until(s, "the second member has got a partition", func() bool { return second.seen(inbox.OutcomeHandled) >= 10 })
		first.stop()
		require.NoError(s.t, first.wait())
		s.handled(20, limit)
		second.stop()
		require.NoError(s.t, second.wait())
		s.exactlyOnce()
	})
}

func TestConfigurationProblemsAreReturnedAtOnce(t *testing.T) {
	t.Parallel()
	err := saramainbox.Run(t.Context(), nil, nil, saramainbox.Config{}, zerolog.Nop())
	for _, part := range []string{"brokers: at least one", "topics: at least one", "dead letter topic is empty"} {
		require.ErrorContains(t, err, part)
	}
	err = kgoinbox.Run(t.Context(), nil, nil, kgoinbox.Config{Policy: inbox.Policy{Grace: time.Hour}}, zerolog.Nop())
	for _, part := range []string{"topics: at least one", "dead letter topic is empty", "rebalance timeout"} {
		require.ErrorContains(t, err, part)
	}
}

func until(s *scene, what string, done func() bool) {
	s.t.Helper()
	harness.Eventually(s.t, limit, what, func() (bool, string) { return done(), fmt.Sprintf("%d effects", s.effects()) })
}
