package kafka_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/kafka"
)

func TestPublishedTellsTopicsAndIDsApart(t *testing.T) {
	t.Parallel()
	set := kafka.NewPublished()
	set.Add("orders", "m1")
	set.Add("orders", "m1")
	assert.Equal(t, 1, set.Len())
	assert.True(t, set.Has("orders", "m1"))
	for _, other := range [][2]string{{"orders", "m2"}, {"orders2", "m1"}, {"ordersm", "1"}, {"", "ordersm1"}, {"orders", ""}} {
		assert.False(t, set.Has(other[0], other[1]), other)
	}
	var none *kafka.Published
	assert.False(t, none.Has("orders", "m1"))
	assert.Zero(t, none.Len())
}

// The tail after a kill in the middle of a huge transaction holds up to a million messages.
func TestPublishedIsSmall(t *testing.T) {
	const n = 200_000
	before := heap()
	set := kafka.NewPublished()
	for i := range n {
		set.Add("orders", fmt.Sprint("a-msg-id-of-a-common-length-", i))
	}
	each := (heap() - before) / n
	assert.Equal(t, n, set.Len())
	assert.LessOrEqual(t, each, uint64(48), "bytes for a message")
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
