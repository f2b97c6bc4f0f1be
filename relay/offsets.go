package relay

import (
	"maps"
	"sync"
)

// offsets knows, for each partition written to, an offset at or beyond which everything lies that is not settled yet. A
// restart reads Kafka from there to tell what was published before the crash.
type offsets struct {
	mu   sync.Mutex
	next map[string]map[int32]int64 // last acked + 1
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
	o.mu.Lock()
	defer o.mu.Unlock()
	partitions := o.next[topic]
	if partitions == nil {
		partitions = make(map[int32]int64)
		o.next[topic] = partitions
	}
	partitions[partition] = offset + 1
}

// snapshot returns the offsets for a checkpoint: the lowest of the messages that are acked and not settled, where there
// are any, else behind the last acked.
func (o *offsets) snapshot(m *marker) map[string]map[int32]int64 {
	o.mu.Lock()
	low := make(map[string]map[int32]int64, len(o.next))
	for topic, partitions := range o.next {
		low[topic] = maps.Clone(partitions)
	}
	o.mu.Unlock()
	m.waiting(func(v *verdict) {
		if v.outcome != outcomeSent || v.it.dest == "" {
			return
		}
		if partitions := low[v.it.dest]; v.it.offset < partitions[v.it.partition] {
			partitions[v.it.partition] = v.it.offset
		}
	})
	return low
}
