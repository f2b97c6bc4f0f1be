package relay

import (
	"sync"

	"example.com/outbox-relay/kafka"
)

// tail is the msg_ids that Kafka held at the start, from the checkpoint on: what was published before a crash and may
// not be marked. It may be used concurrently; a nil tail knows nothing.
type tail struct {
	mu  sync.Mutex
	ids *kafka.Published
}

func (t *tail) has(topic, msgID string) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids.Has(topic, msgID)
}

// forget frees the memory once nothing from before the crash can turn up any more.
func (t *tail) forget() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids = nil
}
