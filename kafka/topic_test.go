package kafka_test

import (
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

func TestTopicTellsWhatTheBrokersSay(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.AllowAutoTopicCreation())
	require.NoError(t, cluster.CreateTopic("orders", 3, map[string]string{"max.message.bytes": "5000", "min.insync.replicas": "2"}))
	client := openOn(t, cluster.ListenAddrs())
	topic, err := client.Topic(t.Context(), "orders")
	require.NoError(t, err)
	assert.Equal(t, 3, topic.Partitions)
	assert.True(t, topic.Exists)
	assert.True(t, topic.Settings)
	assert.Equal(t, 5000, topic.MaxMessageBytes)
	assert.Equal(t, 2, topic.MinInSync)
	assert.Positive(t, topic.Replicas)
	assert.Empty(t, topic.Leaderless)

	missing, err := client.Topic(t.Context(), "missing")
	require.NoError(t, err, "that a topic is missing is an answer")
	assert.False(t, missing.Exists)
	assert.Nil(t, cluster.TopicInfo("missing"), "asking creates nothing")
}

func TestTopicIsCachedOnlyAsLongAsItHolds(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "orders"))
	asked := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "orders", Observe: true, Count: -1})
	client := openOn(t, cluster.ListenAddrs())
	for range 10 {
		topic, err := client.Topic(t.Context(), "orders")
		require.NoError(t, err)
		require.True(t, topic.Exists)
	}
	assert.Equal(t, 1, asked.Hits())

	topic, err := client.Topic(t.Context(), "later")
	require.NoError(t, err)
	require.False(t, topic.Exists)
	require.NoError(t, cluster.CreateTopic("later", 1, nil))
	require.Eventually(t, func() bool {
		topic, err := client.Topic(t.Context(), "later")
		return err == nil && topic.Exists
	}, 5*time.Second, 50*time.Millisecond, "a missing topic is asked for again soon")
}

func TestTopicErrors(t *testing.T) {
	t.Parallel()
	t.Run("ErrNotAuthorised", func(t *testing.T) {
		t.Parallel()
		cluster := fake(t, kfake.SeedTopics(1, "orders"))
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "orders", Err: kerr.TopicAuthorizationFailed, Count: -1})
		_, err := openOn(t, cluster.ListenAddrs()).Topic(t.Context(), "orders")
		require.Error(t, err)
		assert.Equal(t, retry.Refused, kafka.Classify(err))
	})
	t.Run("ErrUnreachable", func(t *testing.T) {
		t.Parallel()
		client := openOn(t, []string{"127.0.0.1:1"})
		_, err := client.Topic(t.Context(), "orders")
		require.Error(t, err)
		assert.Equal(t, retry.Unreachable, kafka.Classify(err))
		require.Error(t, client.Reachable(t.Context()))
	})
	t.Run("SettingsForbidden", func(t *testing.T) {
		t.Parallel()
		cluster := fake(t, kfake.SeedTopics(1, "orders"))
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
		topic, err := open(t, kafka.Config{Brokers: cluster.ListenAddrs(), MaxMessageBytes: 12345}).Topic(t.Context(), "orders")
		require.NoError(t, err)
		assert.True(t, topic.Exists)
		assert.False(t, topic.Settings)
		assert.Equal(t, 12345, topic.MaxMessageBytes, "the configured limit counts")
	})
	t.Run("Leaderless", func(t *testing.T) {
		t.Parallel()
		cluster := fake(t, kfake.SeedTopics(3, "orders"))
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "orders", Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1})
		topic, err := openOn(t, cluster.ListenAddrs()).Topic(t.Context(), "orders")
		require.NoError(t, err)
		assert.True(t, topic.Exists)
	})
}

func TestReachableCountsARefusalAsAnAnswer(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	client := openOn(t, cluster.ListenAddrs())
	require.NoError(t, client.Reachable(t.Context()))
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	require.NoError(t, client.Reachable(t.Context()))
	cluster.Close()
	require.Error(t, client.Reachable(t.Context()))
}

func TestCreateTopic(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.NumBrokers(3), kfake.DefaultNumPartitions(5))
	client := openOn(t, cluster.ListenAddrs())
	topic, err := client.Topic(t.Context(), "new")
	require.NoError(t, err)
	require.False(t, topic.Exists)
	require.NoError(t, client.CreateTopic(t.Context(), "new"))
	require.NoError(t, client.CreateTopic(t.Context(), "new"), "it is there already")
	topic, err = client.Topic(t.Context(), "new")
	require.NoError(t, err)
	assert.True(t, topic.Exists, "the answer from before is forgotten")
	assert.Equal(t, 5, topic.Partitions, "the brokers' default")
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.PolicyViolation})
	err = client.CreateTopic(t.Context(), "forbidden")
	require.Error(t, err)
	assert.Equal(t, retry.Refused, kafka.Classify(err))
}

func TestClosedClient(t *testing.T) {
	t.Parallel()
	client := openOn(t, []string{"127.0.0.1:1"})
	require.NoError(t, client.Close())
	require.NoError(t, client.Close())
	_, err := client.Topic(t.Context(), "orders")
	require.ErrorIs(t, err, kafka.ErrClosed)
	_, _, err = client.Probe(t.Context(), record("orders", "a", 0))
	require.ErrorIs(t, err, kafka.ErrClosed)
	_, err = client.NewProducer(func(kafka.Result) {})
	require.ErrorIs(t, err, kafka.ErrClosed)
}

// The vectors are from Kafka's own UtilsTest.testMurmur2.
func TestPartitionIsJavas(t *testing.T) {
	t.Parallel()
	const partitions = 1000
	cluster := fake(t, kfake.SeedTopics(partitions, "orders"))
	client := openOn(t, cluster.ListenAddrs())
	for key, hash := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		got, err := client.Partition(t.Context(), "orders", []byte(key))
		require.NoError(t, err)
		assert.Equal(t, (hash&0x7fffffff)%partitions, got, key)
	}
}
