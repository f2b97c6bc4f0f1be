package relay

import (
	"time"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// item is one row of the stream on its way to being settled. It has one owner at a time: the pump, then the gate or
// the producer, then the marker.
type item struct {
	ref       outbox.Ref
	txn       *Txn
	topic     *topic         // the gate's entry of the row's topic
	slot      store.Slot     // of the row's key, 0 when nothing can wait behind it
	dest      string         // the Kafka topic that the router chose for it
	rec       *router.Record // nil once it is acked: only the mark is left to do
	size      int64          // bytes taken of the window, 0 once given back
	committed time.Time
	origin    string
	retries   int
	sentAt    time.Time
	waiting   *waiting // while the producer has it
	// hasNextRetry says that the row was written with a next_retry_time, so the sweeper may see it as due before the
	// stream has read it.
	hasNextRetry bool
	// Where Kafka put it.
	partition int32
	offset    int64
}
