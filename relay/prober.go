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
	missing map[string]bool  // by topic: whether it did not exist when it was last tried or looked for
	limits  map[string]int64 // by topic: how large a message it takes, in bytes, as far as it was learnt
}

func newProber(broker Broker, createTopics bool, log zerolog.Logger) *prober {
	return &prober{broker: broker, createTopics: createTopics, log: log, missing: make(map[string]bool), limits: make(map[string]int64)}
}

// errNoTopic is a topic that does not exist. It is refused for now: somebody may create it.
var errNoTopic = errors.New("the topic does not exist: create it, or set kafka.create_topics")

// attempt is how a lone message went.
type attempt struct {
	partition int32
	offset    int64
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

// limit returns how large a message may be that a topic takes, in bytes, 0 when that is not known. Before a size is
// said to be too large the brokers are asked again: somebody may have raised the limit, as the dead letter advises.
// The error is ctx's: a question that was cut short is no answer.
func (p *prober) limit(ctx context.Context, name string, size int64) (int64, error) {
	known := p.known(name)
	if known == 0 || size <= known {
		return known, nil
	}
	asking, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	topic, err := p.broker.Topic(asking, name)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err == nil {
		p.learn(name, topic)
	}
	return p.known(name), nil
}

func (p *prober) known(name string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limits[name]
}

// learn keeps a topic's limit.
func (p *prober) learn(name string, topic kafka.Topic) {
	if topic.MaxMessageBytes <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limits[name] = int64(topic.MaxMessageBytes)
}

func (p *prober) remember(name string, exists bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missing[name] = !exists
}

// appeared reports whether a topic that did not exist when it was last tried exists now. One that an earlier session
// has tried is looked for here the first time: only from then on is it known whether it has come.
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
func (p *prober) try(ctx context.Context, rec *router.Record, seen func()) attempt {
	topic, err := p.topic(ctx, rec.Topic)
	if err != nil {
		return attempt{class: classify(err), err: err}
	}
	p.learn(rec.Topic, topic)
	seen()
	if err := ctx.Err(); err != nil { // what is known of a topic is known after that, too
		return attempt{class: retry.Unreachable, err: err}
	}
	var a attempt
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

// try sends a lone message and lets the topic's line know when that takes long.
func (f *flow) try(ctx context.Context, t *line, rec *router.Record) attempt {
	slow := time.AfterFunc(holdAtMost, func() { f.lines.probeIsSlow(t) })
	defer slow.Stop()
	return f.prober.try(ctx, rec, func() { f.lines.reached(t, true) })
}

// probe sends the first message to a topic in the background and reports to the topic's line how it went.
func (f *flow) probe(ctx context.Context, it *item) {
	f.probes.Go(func() { f.probeLoop(ctx, it) })
}

func (f *flow) probeLoop(ctx context.Context, it *item) {
	backoff := retry.Doubling(100*time.Millisecond, 2*time.Second).Attempts()
	t := it.topic
	for it != nil {
		if way, waits := f.lines.atKey(it); waits { // the probe before was one of its key's, and is dead
			_ = f.onward(ctx, it, way) // nothing is sent
			it = f.lines.probeDead(t)
			continue
		}
		it.sentAt = time.Now()
		a := f.try(ctx, t, it.rec)
		switch {
		case a.err == nil:
			f.acked(it, a.partition, a.offset)
			_ = f.lines.probeAcked(ctx, t) // it has ended the session, and the line holds what is left
			return
		case ctx.Err() != nil:
			return // unsettled: it is read again after the next start
		case a.class == retry.Never:
			f.dead(it, a.err)
			it = f.lines.probeDead(t)
		case a.class == retry.Refused:
			// The row becomes the one by which the sweeper tries the topic again.
			f.failed(it, a.err)
			f.lines.close(t, a.err.Error(), time.Time{})
			return
		case f.prober.broker.Reachable(ctx) == nil:
			// Only this topic is in trouble: no leader, too few replicas. Nothing is spent.
			f.lines.closeWith(t, it, a.err.Error(), time.Now().Add(unreachablePause))
			return
		default:
			f.lines.reached(t, false)
			f.outage.Note(a.err)
			if retry.Wait(ctx, backoff.Next()) != nil {
				return
			}
		}
	}
}
