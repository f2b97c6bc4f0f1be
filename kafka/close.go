package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Close waits until every record handed over has its result, or until ctx ends; then the rest gets ErrAbandoned. After
// it has returned no result comes. It ends within moments of ctx, with the brokers dead too.
func (p *Producer) Close(ctx context.Context) error {
	if !p.begin() {
		return nil
	}
	// A Send that is in progress ends now, since stop is closed.
	p.sending.Lock()
	defer p.sending.Unlock()
	errs := []error{p.await(ctx)}
	p.wake(p.mover.kick)
	<-p.mover.ended
	for _, l := range p.lanes {
		errs = append(errs, l.close(closeGrace))
	}
	p.results.mute()
	return errors.Join(errs...)
}

func (p *Producer) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing() {
		return false
	}
	close(p.stop)
	return true
}

// closing reports whether Close has begun.
func (p *Producer) closing() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

// await waits for the results, and forces them when ctx ends, or at once when the producer has given up.
func (p *Producer) await(ctx context.Context) error {
	for ctx.Err() == nil && !p.gaveUp() {
		if p.left() == 0 {
			return nil
		}
		select {
		case <-p.settled:
		case <-ctx.Done():
		}
	}
	left := p.abandon()
	p.fail()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	for p.left() > 0 {
		select {
		case <-p.settled:
		case <-timer.C:
			return fmt.Errorf("close producer: %d of %d abandoned records got no result", p.left(), left)
		}
	}
	if left == 0 {
		return nil
	}
	return fmt.Errorf("close producer: %d records may be in Kafka or not: %w",
		left, cmp.Or(context.Cause(ctx), ErrAbandoned))
}

func (p *Producer) gaveUp() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.given
}

func (p *Producer) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending
}

// abandon cuts every lane, and returns how many records are without a result.
func (p *Producer) abandon() int {
	p.mu.Lock()
	p.given = true
	left := p.pending
	p.mu.Unlock()
	for _, l := range p.lanes {
		l.dial.Cut()
	}
	return left
}

// fail ends the mover and settles what never came to sarama.
func (p *Producer) fail() {
	p.wake(p.mover.kick)
	<-p.mover.ended
	p.mu.Lock()
	var rest []*envelope
	for _, queue := range p.backlog {
		rest = append(rest, queue.waiting...)
		queue.waiting = nil
	}
	p.backlog = nil
	p.mu.Unlock()
	for _, env := range rest {
		p.results.deliver(Result{Token: env.token, Offset: OffsetUnknown, Err: fmt.Errorf("%w: it was not sent", ErrAbandoned)})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending -= len(rest)
	if p.pending == 0 {
		p.wake(p.settled)
	}
}
