package kafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/retry"
)

// After its context has ended Send takes nothing, whoever goes on calling it: not directly and not into a queue.
func TestSendWithAnEndedContextTakesNothing(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "orders"))
	p, got := producer(t, openOn(t, cluster.ListenAddrs()))
	send(t, p, record("orders", "k", 0), 0) // it is connected
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i := 1; i <= 1000; i++ {
		require.ErrorIs(t, p.Send(ended, record("orders", "k", i), i), context.Canceled)
	}
	send(t, p, record("orders", "k", 1001), 1001)
	results := got.waitFor(t, 2)
	require.Equal(t, []any{0, 1001}, []any{results[0].Token, results[1].Token})
}

// A context that ends, or a producer that closes, amid many records: those that were taken come before all that were
// not, even if the caller goes on after an error. There are more of them than sarama may hold, so some wait in the
// queue.
func TestSendTakesACleanPrefix(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(cancel func(), p *kafka.Producer){
		"Context": func(cancel func(), _ *kafka.Producer) { cancel() },
		"Close": func(_ func(), p *kafka.Producer) {
			ctx, done := context.WithTimeout(context.Background(), waitFor)
			defer done()
			_ = p.Close(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t, kfake.SeedTopics(1, "orders"))
			client := openOn(t, cluster.ListenAddrs())
			for round := range 40 {
				got := &results{}
				p, err := client.NewProducer(got.add)
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				send(t, p, record("orders", "k", 0), 0)
				ending := make(chan struct{})
				go func() {
					defer close(ending)
					<-time.After(time.Duration(round) * 50 * time.Microsecond)
					end(cancel, p)
				}()
				taken, refused := 0, 0
				for i := 1; refused < 1000; i++ {
					if p.Send(ctx, record("orders", "k", i), i) != nil {
						refused++
						continue
					}
					require.Zero(t, refused, "record %d was taken after one was refused", i)
					taken++
				}
				<-ending
				cancel()
				closing, done := context.WithTimeout(context.WithoutCancel(t.Context()), waitFor)
				require.NoError(t, p.Close(closing))
				done()
				all := got.list()
				require.Len(t, all, taken+1, "each that was taken has a result")
				for i, r := range all {
					require.NoError(t, r.Err)
					assert.Equal(t, i, r.Token)
				}
			}
		})
	}
}

// The first record of thousands has an unknown outcome. Those that wait behind it, beyond what sarama holds, must not
// pass it.
func TestNothingWaitingPassesAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "orders"))
	client := openOn(t, cluster.ListenAddrs())
	ctx, fail := context.WithCancel(t.Context())
	defer fail()
	got := &results{}
	p, err := client.NewProducer(func(r kafka.Result) {
		got.add(r)
		if r.Err != nil && kafka.Classify(r.Err) == retry.Unreachable {
			fail()
		}
	})
	require.NoError(t, err)
	send(t, p, record("orders", "k", 0), 0)
	got.waitFor(t, 1)
	sent := make(chan struct{})
	cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.OutOfOrderSequenceNumber, Count: 1,
		When: func(kmsg.Request) bool { <-sent; return true }, // not answered before all of them are with the producer
	})
	taken := 1
	for taken <= 18_000 {
		require.NoError(t, p.Send(ctx, record("orders", "k", taken), taken))
		taken++
	}
	close(sent)
	<-ctx.Done()
	require.ErrorIs(t, p.Send(t.Context(), record("orders", "k", taken), taken), kafka.ErrClosed, "whatever the context")
	closing, done := context.WithTimeout(context.WithoutCancel(t.Context()), waitFor)
	defer done()
	require.ErrorIs(t, p.Close(closing), kafka.ErrAbandoned)
	require.NoError(t, closing.Err(), "it does not wait for what it does not send")
	all := got.list()
	require.Len(t, all, taken, "each that was taken has a result")
	for _, r := range all[1:] {
		require.Error(t, r.Err, "%v was acked after one of its key whose outcome is unknown", r.Token)
	}
}
