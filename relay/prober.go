package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
)

// prober sends lone messages: the first to a topic since the start, and the sweeper's to a closed one. Nothing else of
// the topic is with the producer meanwhile, so the outcome decides before anything could pass the message.
type prober struct {
	broker       Broker
	createTopics bool
	log          zerolog.Logger

	mu      sync.Mutex
	missing map[string]bool // by topic: whether it did not exist when it was last tried or looked for
}

func newProber(broker Broker, createTopics bool, log zerolog.Logger) *prober {
	return &prober{broker: broker, createTopics: createTopics, log: log, missing: make(map[string]bool)}
}

// errNoTopic is a topic that does not exist. It is refused for now: somebody may create it.
var errNoTopic = errors.New("the topic does not exist: create it, or set kafka.create_topics")

// attempt is how a lone message went.
type attempt struct {
	partition int32
	offset    int64
	maxBytes  int // the topic's limit, 0 when it was not learnt
	class     retry.Class
	err       error
}

// topic looks whether the topic is there, and makes it when that is configured.
func (p *prober) topic(ctx context.Context, name string) (kafka.Topic, error) {
	topic, err := p.broker.Topic(ctx, name)
	if err != nil {
		return topic, err
	}
	p.remember(name, topic.Exists || p.createTopics)
	switch {
	case topic.Exists:
		return topic, nil
	case !p.createTopics:
		return topic, errNoTopic
	}
	if err := p.broker.CreateTopic(ctx, name); err != nil {
		return topic, err
	}
	p.log.Info().Str("topic", name).Msg("topic created")
	topic.Exists = true
	return topic, nil
}

func (p *prober) remember(name string, exists bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missing[name] = !exists
}

// appeared reports whether a topic that did not exist when it was last tried exists now. One that an earlier session has tried
// is looked for here the first time: only from then on is it known whether it has come.
func (p *prober) appeared(ctx context.Context, name string) bool {
	p.mu.Lock()
	missing, known := p.missing[name]
	p.mu.Unlock()
	if known && !missing {
		return false
	}
	topic, err := p.broker.Topic(ctx, name)
	if err != nil {
		return false
	}
	if !known {
		p.remember(name, topic.Exists)
	}
	return known && topic.Exists
}

// try sends one lone message. seen is called once the brokers have answered for the topic, before it is sent.
func (p *prober) try(ctx context.Context, rec *router.Record, seen func(maxBytes int)) attempt {
	topic, err := p.topic(ctx, rec.Topic)
	if err != nil {
		return attempt{class: classify(err), err: err}
	}
	seen(topic.MaxMessageBytes)
	if err := ctx.Err(); err != nil { // what is known of a topic is known after that, too
		return attempt{class: retry.Unreachable, err: err}
	}
	a := attempt{maxBytes: topic.MaxMessageBytes}
	// Stopping does not cut it short: its outcome would be unknown, and it takes seconds at most.
	a.partition, a.offset, a.err = p.broker.Probe(context.WithoutCancel(ctx), rec)
	if a.err != nil {
		a.class = classify(a.err)
	}
	return a
}

func classify(err error) retry.Class {
	switch {
	case errors.Is(err, errNoTopic):
		return retry.Refused
	case errors.Is(err, errBadBodyRef):
		return retry.Never
	}
	return kafka.Classify(err)
}

func reasonOf(err error) string {
	switch {
	case errors.Is(err, errNoTopic):
		return words.RefusedNoTopic
	case errors.Is(err, errBadBodyRef):
		return words.RefusedBadBodyRef
	}
	return kafka.Reason(err)
}

// try sends a lone message and tells the gate when that takes long.
func (f *flow) try(ctx context.Context, t *topic, rec *router.Record) attempt {
	slow := time.AfterFunc(holdAtMost, func() { f.gate.probeIsSlow(t) })
	defer slow.Stop()
	return f.prober.try(ctx, rec, func(maxBytes int) { f.gate.sawReachable(t, true, maxBytes) })
}

// probe sends the first message to a topic in the background and tells the gate how it went.
func (f *flow) probe(ctx context.Context, it *item) {
	f.probes.Go(func() { f.probeLoop(ctx, it) })
}

func (f *flow) probeLoop(ctx context.Context, it *item) {
	backoff := retry.Doubling(100*time.Millisecond, 2*time.Second).Attempts()
	t := it.topic
	for it != nil {
		if f.keys.take(it) { // the probe before was one of its key's, and is dead
			it = f.gate.nextProbe(t)
			continue
		}
		it.sentAt = time.Now()
		a := f.try(ctx, t, it.rec)
		switch {
		case a.err == nil:
			f.acked(it, a.partition, a.offset)
			_ = f.gate.probeAcked(ctx, t) // it has ended the session, and the gate holds what is left
			return
		case ctx.Err() != nil:
			return // unsettled: it is read again after the next start
		case a.class == retry.Never:
			f.dead(it, a.err)
			it = f.gate.nextProbe(t)
		case a.class == retry.Refused:
			// The row becomes the one by which the sweeper tries the topic again.
			f.failed(it, a.err)
			f.gate.close(t, a.err.Error(), time.Time{})
			return
		case f.prober.broker.Reachable(ctx) == nil:
			// Only this topic is in trouble: no leader, too few replicas. Nothing is spent.
			f.gate.closeWith(t, it, a.err.Error(), time.Now().Add(f.pause))
			return
		default:
			f.gate.sawReachable(t, false, 0)
			f.outage.away(a.err, f.log)
			if retry.Wait(ctx, backoff.Next()) != nil {
				return
			}
		}
	}
}
