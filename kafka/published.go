package kafka

import "hash/maphash"

// Published is a set of messages that topics hold, each a topic and a msg_id: a msg_id is unique in its table only,
// and two tables of a source may have the same one for different topics.
//
// A million of them are distinguished by 128 bits each instead of being kept, which takes a fifth of the memory. That
// one is taken for another has a chance of one in 10^26. It may be read concurrently; nil is the empty set.
type Published struct {
	seeds [2]maphash.Seed
	marks map[[2]uint64]struct{}
}

// NewPublished returns an empty set.
func NewPublished() *Published {
	return &Published{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		marks: make(map[[2]uint64]struct{}),
	}
}

// Add adds a message.
func (p *Published) Add(topic, msgID string) { p.marks[p.mark(topic, msgID)] = struct{}{} }

// Has reports whether the message was added.
func (p *Published) Has(topic, msgID string) bool {
	if p == nil {
		return false
	}
	_, ok := p.marks[p.mark(topic, msgID)]
	return ok
}

// Len returns how many messages were added.
func (p *Published) Len() int {
	if p == nil {
		return 0
	}
	return len(p.marks)
}

func (p *Published) mark(topic, msgID string) (m [2]uint64) {
	for i, seed := range p.seeds {
		var h maphash.Hash
		h.SetSeed(seed)
		// A topic's name holds no zero byte. Writing to a hash does not fail.
		_, _ = h.WriteString(topic)
		_ = h.WriteByte(0)
		_, _ = h.WriteString(msgID)
		m[i] = h.Sum64()
	}
	return m
}
