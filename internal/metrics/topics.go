package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// MaxTopics is how many topics get a label of their own in each source.
	MaxTopics = 200
	// OtherTopic is the label of all topics beyond MaxTopics, and of names that no broker would take.
	OtherTopic = "other"
	// NoTopic is the label of a row whose topic is empty; an empty label would be no label at all.
	NoTopic = "none"
	// maxTopicBytes is the longest name a Kafka topic can have.
	maxTopicBytes = 249
)

// topics hands out topic labels. Reading is one atomic load and one map look-up; the map is copied when a topic is new,
// which happens MaxTopics times at most.
type topics struct {
	seen atomic.Pointer[map[string]string]

	mu sync.Mutex // held while a topic is added
}

func newTopics() *topics {
	t := &topics{}
	t.seen.Store(&map[string]string{})
	return t
}

func (t *topics) label(topic string) string {
	seen := *t.seen.Load()
	if l, ok := seen[topic]; ok {
		return l
	}
	switch {
	case topic == "":
		return NoTopic
	case len(topic) > maxTopicBytes || len(seen) >= MaxTopics:
		return OtherTopic
	}
	return t.add(topic)
}

func (t *topics) add(topic string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := *t.seen.Load()
	if l, ok := seen[topic]; ok {
		return l
	}
	if len(seen) >= MaxTopics {
		return OtherTopic
	}
	// The caller's string may be cut from a large buffer; the label keeps a copy of its own. Labels must be UTF-8.
	own := strings.Clone(topic)
	next := maps.Clone(seen)
	next[own] = strings.ToValidUTF8(own, "?")
	t.seen.Store(&next)
	return next[own]
}
