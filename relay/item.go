package relay

import (
	"context"
	"sync"
	"time"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// item is one row of the stream on its way to being settled. It has one owner at a time: the pump, then its line or
// the producer, then the marker.
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

// window bounds what is on its way, in rows and bytes. One row always fits, however large, so that nothing waits for
// ever. It may be used concurrently.
type window struct {
	maxRows  int
	maxBytes int64

	mu    sync.Mutex
	rows  int
	bytes int64
	freed chan struct{} // closed and replaced at each release that someone waits for; nil when nobody waits
}

func newWindow(maxRows int, maxBytes int64) *window {
	return &window{maxRows: maxRows, maxBytes: maxBytes}
}

// tryAcquire takes a place for one row if there is one; otherwise it returns a channel that closes when it is worth
// another try.
func (w *window) tryAcquire(bytes int64) (bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rows == 0 || (w.rows < w.maxRows && w.bytes+bytes <= w.maxBytes) {
		w.rows++
		w.bytes += bytes
		return true, nil
	}
	if w.freed == nil {
		w.freed = make(chan struct{})
	}
	return false, w.freed
}

// acquire waits for a place for one row.
func (w *window) acquire(ctx context.Context, bytes int64) error {
	for {
		ok, freed := w.tryAcquire(bytes)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-freed:
		}
	}
}

// release gives back the places of rows that together had so many bytes.
func (w *window) release(rows int, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows -= rows
	w.bytes -= bytes
	if w.freed != nil {
		close(w.freed)
		w.freed = nil
	}
}

// used returns what is on its way.
func (w *window) used() (rows int, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows, w.bytes
}
