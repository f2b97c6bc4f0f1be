package relay

import (
	"context"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
)

// publisher is the producer as the sweeper sees it (sweeper.Publisher).
type publisher struct {
	flow   *flow
	tail   *tail
	bodies bodies
	gone   chan struct{}
}

// Publish hands a record to the producer that the stream uses too, so that both share one order per partition.
func (p *publisher) Publish(ctx context.Context, rec *router.Record, done func(error)) error {
	w := p.flow.unanswered.add(rec.Topic)
	return p.flow.give(ctx, rec, func(res kafka.Result) {
		w.answered.Store(true)
		if res.Err != nil && kafka.Classify(res.Err) == retry.Unreachable {
			p.flow.unknownOutcome(res.Err)
		}
		if res.Err == nil {
			p.flow.offsets.sweptAcked(rec.Topic, res.Partition, res.Offset)
		}
		done(res.Err)
	}, w)
}

// Gone is closed once the producer is closed.
func (p *publisher) Gone() <-chan struct{} { return p.gone }

// Try sends a record alone, and sees to it that what the stream has for the topic is not held for long meanwhile.
func (p *publisher) Try(ctx context.Context, topic string, rec *router.Record) error {
	a := p.flow.try(ctx, p.flow.lines.topic(topic), rec)
	if a.err == nil {
		p.flow.offsets.sweptAcked(rec.Topic, a.partition, a.offset)
	}
	return a.err
}

// Published reports whether a message was found in Kafka at the start, sent by a process that died before marking it.
func (p *publisher) Published(topic, msgID string) bool { return p.tail.has(topic, msgID) }

// Marked tells that everything published so far is marked.
func (p *publisher) Marked() { p.flow.offsets.sweptMarked() }

// Appeared reports whether a topic that did not exist when it was last tried exists now.
func (p *publisher) Appeared(ctx context.Context, topic string) bool {
	return p.flow.prober.appeared(ctx, topic)
}

// Classify says what a failure means.
func (p *publisher) Classify(err error) (retry.Class, string) { return classify(err), reasonOf(err) }
