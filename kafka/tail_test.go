package kafka_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/kafka"
)

const noLimit = 1_000_000

// fill writes n records and returns their places.
func fill(t *testing.T, client *kafka.Client, topic string, n int) []kafka.Result {
	t.Helper()
	p, got := producer(t, client)
	for i := range n {
		send(t, p, record(topic, fmt.Sprint("k", i%5), i), i)
	}
	return got.waitFor(t, n)
}

func TestTailReadsFromTheOffsetsToTheEnd(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.NumBrokers(3), kfake.SeedTopics(4, "orders"), kfake.SeedTopics(1, "other"))
	client := openOn(t, cluster.ListenAddrs())
	const n = 3000
	from := map[int32]int64{0: 0, 1: 0, 2: 0, 3: 0}
	var wanted []string
	for _, r := range fill(t, client, "orders", n) {
		i := number(t, r)
		if i < n/2 {
			from[r.Partition] = max(from[r.Partition], r.Offset+1)
			continue
		}
		wanted = append(wanted, fmt.Sprint("k", i%5, "-", i))
	}
	fill(t, client, "other", 10)
	ids, complete, err := client.TailMsgIDs(t.Context(), map[string]map[int32]int64{"orders": from}, time.Now(), []string{"orders"}, noLimit)
	require.NoError(t, err)
	assert.True(t, complete)
	assert.Equal(t, len(wanted), ids.Len())
	for _, id := range wanted {
		assert.True(t, ids.Has("orders", id), id)
		assert.False(t, ids.Has("other", id), id)
	}
}

func TestTailReadsByTimeWhereThereIsNoOffset(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(2, "orders"))
	client := openOn(t, cluster.ListenAddrs())
	fill(t, client, "orders", 20)
	ids, complete, err := client.TailMsgIDs(t.Context(), nil, time.Now().Add(-time.Minute), []string{"orders", "missing"}, noLimit)
	require.NoError(t, err, "a topic that does not exist has no tail")
	assert.True(t, complete)
	assert.Equal(t, 20, ids.Len())
	ids, complete, err = client.TailMsgIDs(t.Context(), nil, time.Now().Add(time.Minute), []string{"orders"}, noLimit)
	require.NoError(t, err)
	assert.True(t, complete)
	assert.Zero(t, ids.Len())
}

// With thousands of topics a question for each would take all the time that there is.
func TestTailAsksAboutAllTopicsAtOnce(t *testing.T) {
	t.Parallel()
	topics := make([]string, 300)
	for i := range topics {
		topics[i] = fmt.Sprint("topic", i)
	}
	cluster := fake(t, kfake.NumBrokers(3), kfake.SeedTopics(2, topics...))
	client := openOn(t, cluster.ListenAddrs())
	fill(t, client, topics[7], 20)
	var requests atomic.Int64
	cluster.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		requests.Add(1)
		return nil, nil, false
	})
	ids, complete, err := client.TailMsgIDs(t.Context(), nil, time.Now().Add(-time.Minute), append(topics, "missing"), noLimit)
	require.NoError(t, err)
	assert.True(t, complete)
	assert.Equal(t, 20, ids.Len())
	assert.Less(t, requests.Load(), int64(20))
}

// A row may name what Kafka does not take as a topic. The other topics' tails are read all the same.
func TestTailOfNamesThatAreNoTopics(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "orders"))
	client := openOn(t, cluster.ListenAddrs())
	fill(t, client, "orders", 5)
	ids, complete, err := client.TailMsgIDs(t.Context(), nil, time.Now().Add(-time.Minute), []string{"orders", "", "a b"}, noLimit)
	require.NoError(t, err)
	assert.True(t, complete)
	assert.Equal(t, 5, ids.Len())
}

// A leader that moves, or a broker that comes back within the ten seconds, costs time and no copies.
func TestTailWaitsForLeaders(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]kfake.Fault{
		"Topics":  {Keys: []kmsg.Key{kmsg.Metadata}, Topic: "orders", Err: kerr.LeaderNotAvailable},
		"Offsets": {Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders", Err: kerr.NotLeaderForPartition},
		"Records": {Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders", Err: kerr.NotLeaderForPartition},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t, kfake.SeedTopics(2, "orders"))
			client := openOn(t, cluster.ListenAddrs())
			fill(t, client, "orders", 20)
			fault.Count = 5
			cluster.Fault(fault)
			long := time.Now().Add(-time.Hour)
			ids, complete, err := client.TailMsgIDs(t.Context(), nil, long, []string{"orders"}, noLimit)
			require.NoError(t, err)
			assert.True(t, complete)
			assert.Equal(t, 20, ids.Len())
		})
	}
}

func TestTailIsIncompleteWhen(t *testing.T) {
	t.Parallel()
	long := time.Now().Add(-time.Hour)
	t.Run("TooMany", func(t *testing.T) {
		t.Parallel()
		cluster := fake(t, kfake.SeedTopics(1, "orders"))
		client := openOn(t, cluster.ListenAddrs())
		fill(t, client, "orders", 50)
		_, complete, err := client.TailMsgIDs(t.Context(), nil, long, []string{"orders"}, 49)
		require.ErrorContains(t, err, "more records")
		assert.False(t, complete)
		_, complete, err = client.TailMsgIDs(t.Context(), nil, long, []string{"orders"}, 50)
		require.NoError(t, err)
		assert.True(t, complete)
	})
	t.Run("Forbidden", func(t *testing.T) {
		t.Parallel()
		cluster := fake(t, kfake.SeedTopics(1, "orders"))
		client := openOn(t, cluster.ListenAddrs())
		fill(t, client, "orders", 5)
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
		ids, complete, err := client.TailMsgIDs(t.Context(), nil, long, []string{"orders"}, noLimit)
		require.Error(t, err)
		assert.False(t, complete)
		assert.Zero(t, ids.Len())
	})
	t.Run("Gone", func(t *testing.T) {
		t.Parallel()
		cluster := fake(t, kfake.SeedTopics(1, "orders"))
		client := openOn(t, cluster.ListenAddrs())
		fill(t, client, "orders", 10)
		require.NoError(t, cluster.DeleteRecords("orders", 0, 5))
		from := map[string]map[int32]int64{"orders": {0: 2}}
		ids, complete, err := client.TailMsgIDs(t.Context(), from, long, nil, noLimit)
		require.ErrorContains(t, err, "no longer there")
		assert.False(t, complete)
		assert.Equal(t, 5, ids.Len(), "what is there is known all the same")
	})
	t.Run("Unreachable", func(t *testing.T) {
		t.Parallel()
		client := openOn(t, []string{"127.0.0.1:1"})
		_, complete, err := client.TailMsgIDs(t.Context(), nil, long, []string{"orders"}, noLimit)
		require.Error(t, err)
		assert.False(t, complete)
	})
}

// A topic that was deleted and made anew is shorter than the offset says: what it has is read by time.
func TestTailOfATopicMadeAnew(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "orders"))
	client := openOn(t, cluster.ListenAddrs())
	fill(t, client, "orders", 3)
	from := map[string]map[int32]int64{"orders": {0: 500}}
	ids, complete, err := client.TailMsgIDs(t.Context(), from, time.Now().Add(-time.Minute), nil, noLimit)
	require.NoError(t, err)
	assert.True(t, complete)
	assert.Equal(t, 3, ids.Len())
}

func TestTailKnowsItsOwnSource(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "orders"))
	fill(t, openOn(t, cluster.ListenAddrs()), "orders", 3)
	for source, want := range map[string]int{"test": 3, "another": 0, "": 3} {
		client := open(t, kafka.Config{Brokers: cluster.ListenAddrs(), Source: source})
		ids, complete, err := client.TailMsgIDs(t.Context(), nil, time.Now().Add(-time.Minute), []string{"orders"}, noLimit)
		require.NoError(t, err)
		assert.True(t, complete)
		assert.Equal(t, want, ids.Len(), source)
	}
}
