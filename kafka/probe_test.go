package kafka_test

import (
	"context"
	"net"
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

func TestProbeGoesWhereTheProducerWouldPutIt(t *testing.T) {
	t.Parallel()
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t, kfake.SeedTopics(7, "orders"))
			client := open(t, kafka.Config{Brokers: cluster.ListenAddrs(), Compression: codec})
			p, got := producer(t, client)
			for i := range 20 {
				rec := record("orders", string(rune('a'+i)), i)
				partition, offset, err := client.Probe(t.Context(), rec)
				require.NoError(t, err)
				want, err := client.Partition(t.Context(), "orders", rec.Key)
				require.NoError(t, err)
				assert.Equal(t, want, partition)
				send(t, p, rec, i)
				sent := got.waitFor(t, i+1)[i]
				require.NoError(t, sent.Err)
				assert.Equal(t, partition, sent.Partition)
				assert.Equal(t, offset+1, sent.Offset)
			}
			for _, r := range consume(t, cluster.ListenAddrs(), "orders", 40) {
				assert.Len(t, r.Headers, 3)
				assert.WithinDuration(t, time.Now(), r.Timestamp, time.Minute)
			}
		})
	}
}

func TestProbeTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		key   kmsg.Key
		fault *kerr.Error
		class retry.Class
		text  string
	}{
		{"ErrTopicAuthorization", kmsg.Produce, kerr.TopicAuthorizationFailed, retry.Refused, "Write and Describe"},
		{"ErrDescribe", kmsg.Metadata, kerr.TopicAuthorizationFailed, retry.Refused, "Write and Describe"},
		{"ErrUnknownTopic", kmsg.Metadata, kerr.UnknownTopicOrPartition, retry.Refused, "create the topic"},
		{"ErrTooLarge", kmsg.Produce, kerr.MessageTooLarge, retry.Never, "max.message.bytes"},
		{"ErrInvalidRecord", kmsg.Produce, kerr.InvalidRecord, retry.Never, "broker's log"},
		{"ErrInvalidTimestamp", kmsg.Produce, kerr.InvalidTimestamp, retry.Refused, "clocks"},
		{"ErrNotEnoughReplicas", kmsg.Produce, kerr.NotEnoughReplicas, retry.Unreachable, "min.insync.replicas"},
		{"ErrNoLeader", kmsg.Metadata, kerr.LeaderNotAvailable, retry.Unreachable, "brokers"},
		{"ErrNotLeader", kmsg.Produce, kerr.NotLeaderForPartition, retry.Unreachable, ""},
		{"ErrServer", kmsg.Produce, kerr.UnknownServerError, retry.Refused, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t, kfake.SeedTopics(1, "orders"))
			faults := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{c.key}, Topic: "orders", Err: c.fault, Count: -1})
			client := openOn(t, cluster.ListenAddrs())
			_, offset, err := client.Probe(t.Context(), record("orders", "a", 0))
			require.Error(t, err)
			assert.Equal(t, c.class, kafka.Classify(err), "%v", err)
			assert.Contains(t, err.Error(), c.text)
			assert.Equal(t, kafka.OffsetUnknown, offset)
			faults.Remove()
			for range 5 { // no circuit is left broken
				_, _, err = client.Probe(t.Context(), record("orders", "a", 0))
				require.NoError(t, err)
			}
		})
	}
}

func TestProbeIsSoonOver(t *testing.T) {
	t.Parallel()
	t.Run("ErrRefused", func(t *testing.T) {
		t.Parallel()
		client := openOn(t, []string{"127.0.0.1:1", "127.0.0.1:2"})
		start := time.Now()
		_, _, err := client.Probe(t.Context(), record("orders", "a", 0))
		require.Error(t, err)
		assert.Equal(t, retry.Unreachable, kafka.Classify(err))
		assert.Less(t, time.Since(start), 2*time.Second)
	})
	t.Run("ErrSilent", func(t *testing.T) {
		t.Parallel()
		client := openOn(t, []string{silent(t)})
		start := time.Now()
		_, _, err := client.Probe(t.Context(), record("orders", "a", 0))
		require.Error(t, err)
		assert.Equal(t, retry.Unreachable, kafka.Classify(err))
		assert.Less(t, time.Since(start), 8*time.Second)
		start = time.Now()
		require.NoError(t, client.Close(), "also while a question is on its way")
		assert.Less(t, time.Since(start), time.Second)
	})
	t.Run("ErrContext", func(t *testing.T) {
		t.Parallel()
		client := openOn(t, []string{silent(t)})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _, err := client.Probe(ctx, record("orders", "a", 0))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// silent listens and accepts, and never says a word.
func silent(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	return listener.Addr().String()
}

func TestOneDeadBootstrapBrokerIsNoTrouble(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "orders"))
	for range 6 { // sarama shuffles them
		client := openOn(t, append([]string{"127.0.0.1:1", "127.0.0.1:2"}, cluster.ListenAddrs()...))
		p, got := producer(t, client)
		send(t, p, record("orders", "a", 0), 0)
		require.NoError(t, got.waitFor(t, 1)[0].Err)
		require.NoError(t, client.Reachable(t.Context()))
	}
}
