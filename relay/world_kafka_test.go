package relay_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
)

// This file is the world's Kafka.

type broker struct{ *hands }

func (b broker) Reachable(context.Context) error {
	if err := b.enter(false); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if !b.kafkaUp {
		return sarama.ErrOutOfBrokers
	}
	return nil
}

func (b broker) Topic(_ context.Context, name string) (kafka.Topic, error) {
	if err := b.enter(false); err != nil {
		return kafka.Topic{}, err
	}
	defer b.mu.Unlock()
	if !b.kafkaUp {
		return kafka.Topic{}, sarama.ErrOutOfBrokers
	}
	return kafka.Topic{Name: name, Exists: b.topic(name).exists}, nil
}

func (b broker) CreateTopic(context.Context, string) error { return nil }

func (b broker) Probe(ctx context.Context, rec *router.Record) (int32, int64, error) {
	pause(ctx, b.latency())
	if err := b.enter(false); err != nil {
		return 0, 0, err
	}
	defer b.mu.Unlock()
	offset, err := b.deliver(rec)
	return 0, offset, err
}

func (b broker) latency() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Duration(b.random.IntN(20)) * time.Millisecond
}

func (b broker) TailMsgIDs(_ context.Context, from map[string]map[int32]int64, since time.Time, topics []string, _ int) (*kafka.Published, bool, error) {
	if err := b.enter(false); err != nil {
		return nil, false, err
	}
	defer b.mu.Unlock()
	if !b.kafkaUp {
		b.blind++
		return nil, false, sarama.ErrOutOfBrokers
	}
	ids := kafka.NewPublished()
	seen := map[string]int64{}
	for _, rec := range b.records {
		start, known := from[rec.topic]
		in := known && seen[rec.topic] >= start[0] || !known && slices.Contains(topics, rec.topic) && !rec.at.Before(since)
		if in {
			ids.Add(rec.topic, rec.msgID)
		}
		seen[rec.topic]++
	}
	return ids, true, nil
}

func (b broker) NewProducer(results func(kafka.Result)) (relay.Producer, error) {
	p := &producer{broker: b, results: results, more: make(chan struct{}, 1), done: make(chan struct{})}
	go p.run()
	return p, nil
}

type handed struct {
	rec   *router.Record
	token any
}

// producer delivers in order, but a topic that is stuck holds up no other one. A Kafka that is away is waited for.
//
// It is worse than the real one in one thing: after its context has ended a Send takes the record or refuses it by
// chance, as a bare select does. So the relay has to end at the first refusal by itself.
type producer struct {
	broker
	results func(kafka.Result)
	more    chan struct{} // size 1: there may be something to do
	done    chan struct{}

	queueMu sync.Mutex
	queue   []handed
	closed  bool
	cut     bool // what is left is given up
}

func (p *producer) Send(ctx context.Context, rec *router.Record, token any) error {
	pause(ctx, p.trouble.sendTakes())
	if ctx.Err() != nil && p.roll(2) == 0 {
		return ctx.Err()
	}
	p.queueMu.Lock()
	defer p.queueMu.Unlock()
	if p.closed {
		return kafka.ErrClosed
	}
	p.queue = append(p.queue, handed{rec, token})
	p.wake()
	return nil
}

func (p *producer) wake() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// take returns the next record that can be delivered; cut tells that none can any more, ended that there is none.
func (p *producer) take() (next handed, ok, cut, ended bool) {
	p.queueMu.Lock()
	defer p.queueMu.Unlock()
	stuck := p.trouble.stuckNow()
	for i, h := range p.queue {
		if p.cut || !stuck[h.rec.Topic] {
			p.queue = slices.Delete(p.queue, i, i+1)
			return h, true, p.cut, false
		}
	}
	return handed{}, false, false, p.closed && len(p.queue) == 0
}

func (p *producer) run() {
	defer close(p.done)
	for {
		h, ok, cut, ended := p.take()
		switch {
		case ended:
			return
		case cut:
			p.results(kafka.Result{Token: h.token, Offset: kafka.OffsetUnknown, Err: kafka.ErrAbandoned})
		case ok:
			p.finish(h)
		default:
			p.rest(20 * time.Millisecond)
		}
	}
}

// rest waits until there may be something to do.
func (p *producer) rest(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-p.more:
	case <-timer.C:
	}
}

// finish brings one record to its end. After a crash there is nobody to tell.
func (p *producer) finish(h handed) {
	if !p.trouble.isPrompt() && p.roll(5) == 0 {
		pause(context.Background(), p.latency())
	}
	if err := p.trouble.refusal(h.rec); err != nil {
		if kafka.Classify(err) == retry.Unreachable {
			p.close(true) // it gives up: nothing that waits passes the record
		}
		p.results(kafka.Result{Token: h.token, Offset: kafka.OffsetUnknown, Err: err})
		return
	}
	for p.enter(false) == nil {
		if p.kafkaUp {
			offset, err := p.deliver(h.rec)
			p.mu.Unlock()
			p.results(kafka.Result{Token: h.token, Offset: offset, Err: err})
			return
		}
		p.mu.Unlock()
		if p.isCut() {
			p.results(kafka.Result{Token: h.token, Offset: kafka.OffsetUnknown, Err: kafka.ErrAbandoned})
			return
		}
		pause(context.Background(), 50*time.Millisecond)
	}
}

func (p *producer) isCut() bool {
	p.queueMu.Lock()
	defer p.queueMu.Unlock()
	return p.cut
}

func (p *producer) Close(ctx context.Context) error {
	p.close(false)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	p.close(true)
	<-p.done
	return ctx.Err()
}

func (p *producer) close(cut bool) {
	p.queueMu.Lock()
	defer p.queueMu.Unlock()
	p.closed, p.cut = true, p.cut || cut
	p.wake()
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
