package relay

import (
	"time"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// item is one row of the stream on its way to being settled. It has one owner at a time: the pump, then its line or the
// producer, then the marker.
type item struct {
	ref outbox.Ref
	txn *Txn
	// topic is the line of the row's topic. slot stands for that of its key, and is 0 when nothing can wait behind it.
	topic   *line
	slot    store.Slot
	rec     *router.Record // nil once it is acked: only the mark is left to do
	size    int64          // bytes taken of the window, 0 once given back
	retries int
	waiting *waiting // while the producer has it
	// hasNextRetry says that the row was written with a next_retry_time, so the sweeper may see it as due before the
	// stream has read it.
	hasNextRetry bool
	source
	place
}

// source is when and from where an item comes.
type source struct {
	origin    string
	committed time.Time
	sentAt    time.Time
}

// place is where Kafka is to put an item, and has put it.
type place struct {
	dest      string // the Kafka topic that the router chose
	partition int32
	offset    int64
}

// Ref names the item's row (order.Message).
func (it *item) Ref() outbox.Ref { return it.ref }

// Line returns the item's topic and key (order.Message).
func (it *item) Line() order.Name {
	return order.Name{Topic: it.topic.Name().Topic, Key: uint64(it.slot)}
}
