package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
)

// OffsetUnknown is the offset of a record that is in Kafka, the brokers don't say where.
const OffsetUnknown int64 = -1

// ErrAbandoned is the outcome of a record that was still on its way when Close gave up waiting: it may be in Kafka or
// not.
var ErrAbandoned = errors.New("kafka: the producer was closed before the brokers answered")

// Result is what became of a record.
type Result struct {
	Token     any
	Partition int32
	Offset    int64 // OffsetUnknown where the broker did not say it
	// Err is nil when it was written, with acks=all. Else see Classify; Unreachable means that the record may be in Kafka
	// or not.
	Err error
}

// Producer publishes records. For each partition the results come in the order of Send.
//
// It waits for brokers as long as it takes; while they are away Send goes on taking records, so the caller bounds what
// is on its way. A topic that does not move does not hold up others: at most perTopic of its records are with sarama,
// whose stages would fill up and block one another.
type Producer struct {
	client  *Client
	results delivery

	// sending makes the order of calls of Send the order of records. It is held while waiting for a first connection.
	sending sync.Mutex
	lanes   map[int]*lane // by batch limit; guarded by sending

	stop    chan struct{} // closed when Close begins
	mover   mover
	settled chan struct{} // wakes Close when the last result was delivered

	mu      sync.Mutex
	queues  map[string]*topicQueue
	backlog []*topicQueue // queues with records waiting
	pending int           // records without a result
	given   bool          // given up: what waits will not be sent, nor taken
}

// delivery hands results over, one call at a time, also where there are several lanes.
type delivery struct {
	to func(Result)

	mu    sync.Mutex
	muted bool // no results any more
}

const (
	// perTopic is how many records of one topic sarama may hold.
	perTopic = 2048
	// channelSize lets sarama's stages take all of a stuck topic, and what sarama adds to it, without blocking.
	channelSize = perTopic + 256
	// closeGrace is how long an abandoned producer may take to end. It takes milliseconds.
	closeGrace = 3 * time.Second
)

// topicQueue is one topic's share of the producer. Its fields are guarded by Producer.mu.
type topicQueue struct {
	lane    *lane       // nil: to be chosen by the first Send
	renew   bool        // the limit may have changed: the next Send chooses a lane anew, what waits goes by this one
	inside  int         // with sarama
	waiting []*envelope // behind these, in order
	moving  bool        // the mover is handing over records: nothing may overtake them
}

// NewProducer makes a producer that reports to results, which is called for one record at a time. It must not wait for
// anything that waits for the producer, Send and Close included: sarama stands still meanwhile. The first Send
// connects.
func (c *Client) NewProducer(results func(Result)) (*Producer, error) {
	if c.isClosed() {
		return nil, ErrClosed
	}
	p := &Producer{
		client:  c,
		results: delivery{to: results},
		lanes:   map[int]*lane{},
		stop:    make(chan struct{}),
		mover:   mover{kick: make(chan struct{}, 1), ended: make(chan struct{})},
		settled: make(chan struct{}, 1),
		queues:  map[string]*topicQueue{},
	}
	go p.move()
	return p, nil
}

// Send hands a record over. It may wait for the first connection to a broker, until ctx ends; an error means that the
// record was not handed over and no result will come. The record must not be changed until its result is there.
//
// Once ctx has ended, Close was called, or the outcome of a record is unknown, no record is handed over any more. So
// of the records that a caller sends with one context those that are handed over come before all that are not, even
// if the caller goes on after an error.
func (p *Producer) Send(ctx context.Context, rec *router.Record, token any) error {
	env := seal(rec, token)
	p.sending.Lock()
	defer p.sending.Unlock()
	// What follows may take the record although ctx has ended: a queue asks nobody, and a select chooses at random.
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("send to topic %s: %w", rec.Topic, err)
	}
	queue, l, err := p.queue(ctx, rec.Topic)
	if err != nil {
		return fmt.Errorf("send to topic %s: %w", rec.Topic, err)
	}
	env.queue = queue
	if p.admit(queue, env) {
		return nil
	}
	select {
	case l.producer.Input() <- &env.msg:
		return nil
	case <-p.stop:
		err = ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.withdraw(queue)
	return fmt.Errorf("send to topic %s: %w", rec.Topic, err)
}

// admit counts the record and reports whether it has to wait in the topic's queue.
func (p *Producer) admit(queue *topicQueue, env *envelope) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending++
	if queue.inside < perTopic && len(queue.waiting) == 0 && !queue.moving {
		queue.inside++
		return false
	}
	if len(queue.waiting) == 0 {
		p.backlog = append(p.backlog, queue)
	}
	queue.waiting = append(queue.waiting, env)
	return true
}

// withdraw takes back a record that sarama was not given.
func (p *Producer) withdraw(queue *topicQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending--
	queue.inside--
}

// queue returns the topic's queue and its lane. The caller holds sending.
func (p *Producer) queue(ctx context.Context, topic string) (*topicQueue, *lane, error) {
	p.mu.Lock()
	queue := p.queues[topic]
	if queue == nil {
		queue = &topicQueue{}
		p.queues[topic] = queue
	}
	l, closing := queue.lane, p.closing() || p.given
	if queue.renew && queue.inside == 0 && len(queue.waiting) == 0 {
		l = nil // not while the old lane has records: those of the new one would pass them
	}
	p.mu.Unlock()
	if closing {
		return nil, nil, ErrClosed
	}
	if l != nil {
		return queue, l, nil
	}
	l, err := p.lane(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	queue.lane, queue.renew = l, false
	return queue, l, nil
}

// lane returns the lane for a topic's limit, and connects it first where that is needed. Where the limit can't be
// learnt now, the configured one counts; see ErrBatchRefused. The caller holds sending.
func (p *Producer) lane(ctx context.Context, topic string) (*lane, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	limit := p.client.cfg.maxMessageBytes()
	if info, err := p.client.Topic(ctx, topic); err == nil {
		limit = min(limit, info.MaxMessageBytes)
	}
	if l := p.lanes[limit]; l != nil {
		return l, nil
	}
	l, err := newLane(ctx, &p.client.cfg, limit, topic, p.client.log)
	if err != nil {
		return nil, err
	}
	p.lanes[limit] = l
	go l.drain(p.done)
	return l, nil
}

// done takes sarama's word about a message.
func (p *Producer) done(msg *sarama.ProducerMessage, err error) {
	env, ok := msg.Metadata.(*envelope)
	if !ok {
		return // none of ours: sarama hands back only what it was given
	}
	result := Result{Token: env.token, Partition: msg.Partition, Offset: msg.Offset}
	if err != nil {
		result.Offset, result.Err = OffsetUnknown, p.failure(env, err)
		if Classify(result.Err) == retry.Unreachable {
			p.giveUp(env.queue)
		}
	}
	p.results.deliver(result)
	p.mu.Lock()
	defer p.mu.Unlock()
	queue := env.queue
	queue.inside--
	p.pending--
	// Half empty, so that the mover hands over many at a time.
	if len(queue.waiting) > 0 && queue.inside <= perTopic/2 {
		p.wake(p.mover.kick)
	}
	if p.pending == 0 && p.closing() {
		p.wake(p.settled)
	}
}

// giveUp ends the producer after an unknown outcome, before anybody hears of it: what waits behind the record must
// not pass it. What is in a request already may.
func (p *Producer) giveUp(queue *topicQueue) {
	p.mu.Lock()
	first := !p.given
	p.given = true
	l := queue.lane
	p.mu.Unlock()
	if first {
		l.dial.Cut()
		p.wake(p.mover.kick)
		p.wake(p.settled) // a Close that waits already
	}
}

// failure says what an error of sarama's means for one record of a batch.
func (p *Producer) failure(env *envelope, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given {
		return fmt.Errorf("%w: %w", ErrAbandoned, err)
	}
	if !failsBatch(err) {
		return explain(err)
	}
	// The topic's limit may have been lowered: the next Send asks anew.
	env.queue.renew = true
	p.client.topics.forget(env.msg.Topic)
	return fmt.Errorf("%w: %w", ErrBatchRefused, err)
}

// deliver calls back, under a lock: callers rely on one call at a time, and none after mute.
func (d *delivery) deliver(result Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.muted {
		d.to(result)
	}
}

func (d *delivery) mute() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.muted = true
}

func (*Producer) wake(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default: // it is awake already
	}
}
