//go:build !unit

package kafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/test/rig"
)

// stream sends records of several keys at a steady rate until halt is called, which returns how many.
func stream(t *testing.T, p *kafka.Producer, topic string) (halt func() int) {
	t.Helper()
	type outcome struct {
		sent int
		err  error
	}
	stop, done := make(chan struct{}), make(chan outcome)
	go func() {
		keys := []string{"a", "b", "c", "d", "e", "f", "g"}
		pace := time.NewTicker(500 * time.Microsecond)
		defer pace.Stop()
		for sent := 0; ; sent++ {
			select {
			case <-stop:
				done <- outcome{sent: sent}
				return
			case <-pace.C:
			}
			if err := p.Send(t.Context(), record(topic, keys[sent%len(keys)], sent), sent); err != nil {
				done <- outcome{sent, err}
				return
			}
		}
	}()
	return func() int {
		close(stop)
		end := <-done
		require.NoError(t, end.err)
		return end.sent
	}
}

func TestOutageReturnsNoErrorAndKeepsOrder(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]func(*rig.KafkaServer){
		"Stop":  func(s *rig.KafkaServer) { s.Stop(t); after(t, 5*time.Second); s.Start(t) },
		"Kill":  func(s *rig.KafkaServer) { s.Kill(t); after(t, 5*time.Second); s.Start(t) },
		"Pause": func(s *rig.KafkaServer) { s.Pause(t); after(t, 15*time.Second); s.Resume(t) },
	} {
		t.Run(name, func(t *testing.T) {
			server := rig.Kafka(t, rig.Own())
			server.CreateTopic(t, "orders", 4, nil)
			p, got := producer(t, openOn(t, server.Brokers))
			halt := stream(t, p, "orders")
			got.waitFor(t, 500)
			outage(server)
			healed := time.Now()
			n := got.count()
			got.waitFor(t, n+500)
			t.Logf("flows again after %s", time.Since(healed))
			requireOrder(t, server.Brokers, "orders", got.waitFor(t, halt()))
		})
	}
}

// after lets time pass where the passing of time is what is tested.
func after(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func TestS79CloseEndsWithTheBrokerDead(t *testing.T) {
	t.Parallel()
	server := rig.Kafka(t, rig.Own())
	server.CreateTopic(t, "orders", 4, nil)
	for name, fault := range map[string]struct{ breaks, heals func(testing.TB) }{
		"Killed": {server.Kill, server.Start},
		"Frozen": {server.Pause, server.Resume},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				client := openOn(t, server.Brokers)
				got := &results{}
				p, err := client.NewProducer(got.add)
				require.NoError(t, err)
				send(t, p, record("orders", "first", 0), 0)
				got.waitFor(t, 1)
				fault.breaks(t)
				const n = 5000
				for i := range n {
					send(t, p, record("orders", string(rune('a'+i%20)), i), i)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				start := time.Now()
				require.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded)
				cancel()
				took := time.Since(start)
				assert.Less(t, took, 2*time.Second)
				t.Logf("closed after %s", took)
				all := got.list()
				require.Len(t, all, n+1, "each record has a result")
				for _, r := range all[1:] {
					require.ErrorIs(t, r.Err, kafka.ErrAbandoned)
					require.Equal(t, retry.Unreachable, kafka.Classify(r.Err))
				}
				require.NoError(t, client.Close())
				fault.heals(t)
			}
		})
	}
}
