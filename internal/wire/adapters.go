package wire

import (
	"context"
	"time"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/store"
)

// The types below let the relay's ports take what the packages return.

type broker struct{ *kafka.Client }

// NewProducer returns the client's producer.
func (b broker) NewProducer(results func(kafka.Result)) (relay.Producer, error) {
	return b.Client.NewProducer(results)
}

// serverLock is GET_LOCK on the primary.
type serverLock struct {
	store  *store.Store
	source string
}

// Acquire waits for the lock.
func (l serverLock) Acquire(ctx context.Context) (relay.Held, error) {
	return l.store.AcquireLock(ctx, l.source)
}

// lease is the lock in Redis.
type lease struct {
	store  *checkpoint.Store
	source string
	ttl    time.Duration
}

// Acquire waits for the lease.
func (l lease) Acquire(ctx context.Context) (relay.Held, error) {
	return l.store.AcquireLease(ctx, l.source, l.ttl)
}

// noLock is for who runs one relay only.
type noLock struct{}

// Acquire returns at once.
func (noLock) Acquire(context.Context) (relay.Held, error) { return alwaysHeld{}, nil }

type alwaysHeld struct{}

// Lost never closes.
func (alwaysHeld) Lost() <-chan struct{} { return nil }

// Valid is always so.
func (alwaysHeld) Valid() bool { return true }

// Release does nothing.
func (alwaysHeld) Release(context.Context) error { return nil }

// observer counts what the reader tells.
type observer struct{ metrics *metrics.Source }

// Reconnect counts a lost connection.
func (o observer) Reconnect(reason string) { o.metrics.Reconnects.WithLabelValues(reason).Inc() }

// Lock returns the lock by which relays agree on who leads a source.
func Lock(c *config.Config, source string, rows *store.Store, checkpoints *checkpoint.Store) relay.Lock {
	switch c.Leader.Lock {
	case "redis":
		return lease{store: checkpoints, source: source, ttl: c.Leader.Lease}
	case "none":
		return noLock{}
	}
	return serverLock{store: rows, source: source}
}
