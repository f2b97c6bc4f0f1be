package oracle

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Record is one Kafka record as the consumer saw it.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       string
	Value     Hash
	Size      int
	// MsgID is the msg_id header, "" when the record has none.
	MsgID     string
	Headers   map[string]string
	Timestamp time.Time // the record's own
	Seen      time.Time // when the consumer had it
}

// Log is the consumer's record. Safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	records []Record
	seen    map[string]int
	changed chan struct{} // closed and replaced when records are added
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{seen: make(map[string]int), changed: make(chan struct{})} }

// Add appends records in the order they were read.
func (l *Log) Add(records ...Record) {
	if len(records) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, records...)
	for i := range records {
		l.seen[records[i].MsgID]++
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// Records returns a copy of all records so far.
func (l *Log) Records() []Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records)
}

// Len returns how many records were read, duplicates and all.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

// Distinct returns how many different messages were read.
func (l *Log) Distinct() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}

// Seen returns how often a message was read.
func (l *Log) Seen(msgID string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[msgID]
}

// IDs returns the different messages read so far.
func (l *Log) IDs() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.seen)
}

// Wait returns nil as soon as n different messages were read, else the context's error.
func (l *Log) Wait(ctx context.Context, n int) error {
	return l.Until(ctx, func() bool { return l.Distinct() >= n })
}

// Until returns nil as soon as done is true; done is asked again after each addition to the log.
func (l *Log) Until(ctx context.Context, done func() bool) error {
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
