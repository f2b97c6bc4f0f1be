package report

import (
	"context"
	"errors"
	"fmt"
)

// Sender sends reports: HTTP is one, and a SenderFunc around a Kafka producer another.
type Sender interface {
	// Send returns once the report has arrived for good: with Kafka, once it is acked by all replicas. It may be called
	// concurrently. A report that is sent again does no harm.
	Send(ctx context.Context, r Report) error
}

// SenderFunc is a function that is a Sender.
type SenderFunc func(ctx context.Context, r Report) error

// Send calls the function.
func (f SenderFunc) Send(ctx context.Context, r Report) error { return f(ctx, r) }

// Batch gathers what a consumer has handled and reports many messages at once. Call Flush before offsets are committed:
// what was handled and not reported is then delivered again after a crash. It has no goroutine of its own and may be used
// concurrently.
type Batch struct {
	group string
	size  int
	send  Sender

	// turn holds the gathered reports while nobody works on them, so that a Flush also waits for what another one is sending.
	turn chan map[origin][]string // size 1: the one value
}

// origin is where messages came from.
type origin struct{ source, topic string }

// DefaultSize is how many messages a Batch reports at once unless told otherwise.
const DefaultSize = 500

// NewBatch returns a batch that reports for a consumer group, by itself whenever size messages have gathered; zero is
// DefaultSize.
func NewBatch(group string, size int, send Sender) *Batch {
	if size <= 0 {
		size = DefaultSize
	}
	b := &Batch{group: group, size: min(size, MaxIDs), send: send, turn: make(chan map[origin][]string, 1)}
	b.turn <- map[origin][]string{}
	return b
}

// Add notes a message as consumed: by the outbox_source header (may be empty), the topic and the msg_id header of its
// record. When enough have gathered it sends them and returns the error of that; they stay gathered then.
func (b *Batch) Add(ctx context.Context, source, topic, msgID string) error {
	one := Report{Source: source, Group: b.group, Topic: topic, MsgIDs: []string{msgID}}
	if err := one.Validate(); err != nil {
		return err // it must not spoil the others
	}
	gathered, err := b.take(ctx)
	if err != nil {
		return err
	}
	defer func() { b.turn <- gathered }()
	from := origin{source, topic}
	gathered[from] = append(gathered[from], msgID)
	if len(gathered[from]) < b.size {
		return nil
	}
	return b.flush(ctx, gathered, from)
}

// Flush sends everything that has gathered. What could not be sent stays gathered.
func (b *Batch) Flush(ctx context.Context) error {
	gathered, err := b.take(ctx)
	if err != nil {
		return err
	}
	defer func() { b.turn <- gathered }()
	var errs []error
	for from := range gathered {
		errs = append(errs, b.flush(ctx, gathered, from))
	}
	return errors.Join(errs...)
}

func (b *Batch) take(ctx context.Context) (map[origin][]string, error) {
	select {
	case gathered := <-b.turn:
		return gathered, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *Batch) flush(ctx context.Context, gathered map[origin][]string, from origin) error {
	whole := Report{Source: from.source, Group: b.group, Topic: from.topic, MsgIDs: gathered[from]}
	for _, part := range whole.Split() {
		if err := b.send.Send(ctx, part); err != nil {
			return fmt.Errorf("report %d messages as consumed: %w", len(gathered[from]), err)
		}
		gathered[from] = gathered[from][len(part.MsgIDs):]
	}
	delete(gathered, from)
	return nil
}
