package relay

import (
	"maps"
	"sync"
)

// offsets knows, for each partition written to, an offset at or beyond which everything lies that is not settled yet.
// A restart reads Kafka from there to tell what was published before the crash.
type offsets struct {
	mu   sync.Mutex
	next map[string]map[int32]int64 // last acked + 1
	// swept are the lowest offsets of what the sweeper has published and not marked yet. (What the stream has, the
	// marker knows.)
	swept map[string]map[int32]int64
}

// newOffsets starts from what the loaded checkpoint said.
func newOffsets(loaded map[string]map[int32]int64) *offsets {
	o := &offsets{next: make(map[string]map[int32]int64, len(loaded))}
	for topic, partitions := range loaded {
		o.next[topic] = maps.Clone(partitions)
	}
	return o
}

func (o *offsets) acked(topic string, partition int32, offset int64) {
	if offset < 0 {
		return // acked, and the broker did not tell where
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	partitions := o.next[topic]
	if partitions == nil {
		partitions = make(map[int32]int64)
		o.next[topic] = partitions
	}
	partitions[partition] = offset + 1
}

// sweptAcked notes the ack of a message of the sweeper's present batch.
func (o *offsets) sweptAcked(topic string, partition int32, offset int64) {
	if offset < 0 {
		return
	}
	defer o.acked(topic, partition, offset) // after the lower bound, for a snapshot between the two
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.swept == nil {
		o.swept = make(map[string]map[int32]int64)
	}
	lower(o.swept, topic, partition, offset)
}

// sweptMarked tells that the sweeper's batch is marked.
func (o *offsets) sweptMarked() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.swept = nil
}

// lower makes an entry the given offset if it is higher or missing.
func lower(in map[string]map[int32]int64, topic string, partition int32, offset int64) {
	partitions := in[topic]
	if partitions == nil {
		partitions = make(map[int32]int64)
		in[topic] = partitions
	}
	if known, ok := partitions[partition]; !ok || offset < known {
		partitions[partition] = offset
	}
}

// snapshot returns the offsets for a checkpoint: the lowest of the messages that are acked and not settled, where
// there are any, else behind the last acked.
func (o *offsets) snapshot(m *marker) map[string]map[int32]int64 {
	o.mu.Lock()
	low := make(map[string]map[int32]int64, len(o.next))
	for topic, partitions := range o.next {
		low[topic] = maps.Clone(partitions)
	}
	for topic, partitions := range o.swept {
		for partition, offset := range partitions {
			lower(low, topic, partition, offset)
		}
	}
	o.mu.Unlock()
	m.waiting(func(v *verdict) {
		if v.outcome == outcomeSent && v.it.dest != "" && v.it.offset >= 0 {
			lower(low, v.it.dest, v.it.partition, v.it.offset)
		}
	})
	return low
}
