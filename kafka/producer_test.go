package kafka_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

func TestProducerPublishesInOrderAndTellsWhere(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(3, "orders"))
	p, got := producer(t, openOn(t, cluster.ListenAddrs()))
	const n = 5000
	for i := range n {
		send(t, p, record("orders", []string{"a", "b", "c", "d"}[i%4], i), i)
	}
	type place struct {
		partition int32
		offset    int64
	}
	acked := map[place]int{}
	for _, r := range got.waitFor(t, n) {
		require.NoError(t, r.Err)
		acked[place{r.Partition, r.Offset}] = number(t, r)
	}
	require.Len(t, acked, n, "each record has a place of its own")
	last := map[string]int{}
	for _, r := range consume(t, cluster.ListenAddrs(), "orders", n) {
		i, ok := acked[place{r.Partition, r.Offset}]
		require.True(t, ok, "nobody was told of partition %d offset %d", r.Partition, r.Offset)
		want := record("orders", string(r.Key), i)
		assert.Equal(t, string(want.Value), string(r.Value))
		require.GreaterOrEqual(t, i, last[string(r.Key)], "key %s", r.Key)
		last[string(r.Key)] = i
		require.Len(t, r.Headers, len(want.Headers))
		for h := range r.Headers {
			assert.Equal(t, want.Headers[h].Key, r.Headers[h].Key)
			assert.Equal(t, string(want.Headers[h].Value), string(r.Headers[h].Value))
		}
	}
}
