package loop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
)

// Keys of the log.
const (
	KeyGroup     = "group"
	KeyTopic     = "topic"
	KeyPartition = "partition"
	KeyOffset    = "offset"
	KeyMessage   = "message_id"
	KeyAttempt   = "attempt"
	KeyReason    = "reason"
	KeyError     = "error"
	KeyWait      = "wait"
)

// Doer is an *inbox.Inbox.
type Doer interface {
	Group() string
	Do(ctx context.Context, d inbox.Delivery, handler func(ctx context.Context, tx *sql.Tx) error) (inbox.Result, error)
}

var _ Doer = (*inbox.Inbox)(nil)

// Engine handles deliveries by a policy. Any number of partitions may share one; it keeps nothing between deliveries.
type Engine struct {
	inbox   Doer
	handler inbox.Handler
	policy  inbox.Policy
	mail    Mailer
	log     zerolog.Logger
	settle  time.Duration
	hold    func() *retry.Attempts
}

// How long a message is held between attempts while the database or the dead letter topic is away.
const (
	holdLeast = 100 * time.Millisecond
	holdMost  = 15 * time.Second
)

// defaultSettle is how long a handler whose context has ended may take to notice.
const defaultSettle = 5 * time.Second

// ErrDetached is a handler that went on running after its context had ended. It was left behind; its transaction can't
// be committed any more, and its message is delivered again.
var ErrDetached = errors.New("the handler did not end with its context")

// New returns an engine. The policy is complete (inbox.Policy.Complete).
func New(in Doer, handler inbox.Handler, policy inbox.Policy, mail Mailer, log zerolog.Logger) *Engine {
	return &Engine{
		inbox: in, handler: handler, policy: policy, mail: mail, log: log.With().Str(KeyGroup, in.Group()).Logger(), settle: defaultSettle,
		hold: func() *retry.Attempts { return retry.Doubling(holdLeast, holdMost).Attempts() },
	}
}

// Work returns the context of the handlers of a partition: it outlives ctx by the policy's grace, so that the running
// handler can finish. The caller calls release when the partition's last handler has returned.
func (e *Engine) Work(ctx context.Context) (work context.Context, release func()) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(e.policy.Grace)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ended:
		}
		cancel()
	})
	return work, func() {
		stop()
		close(ended)
		cancel()
	}
}

// attempt is where one delivery stands.
type attempt struct {
	delivery *inbox.Delivery
	failures int
	log      zerolog.Logger
	hold     *retry.Attempts
	state    *trouble.Log // of being held; nil before it is
}

// Handle brings a delivery to its end. It returns nil when the delivery's offset may be committed, an *inbox.Stopped when the
// loop is to stop before it, and another error when it was given up because ctx has ended: no new attempt begins
// then, and the running one may finish as long as work allows it.
func (e *Engine) Handle(ctx, work context.Context, d *inbox.Delivery) error {
	d.ID = e.policy.ID(d)
	a := &attempt{delivery: d, hold: e.hold(), log: e.log.With().
		Str(KeyTopic, d.Topic).Int32(KeyPartition, d.Partition).Int64(KeyOffset, d.Offset).Str(KeyMessage, d.ID).Logger()}
	if err := inbox.CheckID(d.ID); err != nil {
		return e.bury(ctx, work, a, inbox.ReasonNoID, err)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.Attempt = a.failures + 1
		result, err := e.try(work, d)
		if err == nil {
			e.done(a, result)
			return nil
		}
		if reason := e.judge(work, a, err); reason != "" {
			return e.bury(ctx, work, a, reason, err)
		}
		if err := e.wait(ctx, work, a, err); err != nil {
			return err
		}
	}
}

// judge counts the failure if it is the message's, and returns the reason why there is to be no other attempt.
func (e *Engine) judge(work context.Context, a *attempt, err error) (reason string) {
	switch {
	case work.Err() != nil, environment(err):
		return ""
	case inbox.IsPermanent(err):
		a.failures++
		return inbox.ReasonPermanent
	}
	a.failures++
	if !e.policy.Retry.Spent(a.failures) {
		return ""
	}
	if _, panicked := errors.AsType[*inbox.Panic](err); panicked {
		return inbox.ReasonPanic
	}
	return inbox.ReasonSpent
}

// environment reports whether the error says nothing about the message.
func environment(err error) bool {
	return errors.Is(err, inbox.ErrUnavailable) || errors.Is(err, inbox.ErrUnknown)
}

// wait pauses before the next attempt, and says why.
func (e *Engine) wait(ctx, work context.Context, a *attempt, cause error) error {
	if err := work.Err(); err != nil {
		if errors.Is(cause, ErrDetached) {
			a.log.Error().Msg("the handler ignores its context; let it end when that is done")
			return cause
		}
		a.log.Warn().Msg("the handler was given up: it did not finish within the grace")
		return fmt.Errorf("message %s given up: %w", a.delivery.ID, err)
	}
	event := inbox.Event{Outcome: inbox.OutcomeFailed, Delivery: a.delivery, Err: cause}
	if environment(cause) {
		event.Outcome, event.Wait = inbox.OutcomeHeld, a.hold.Next()
		a.held(e.policy.Describe(cause))
	} else {
		event.Wait = e.pause(a, cause)
		a.log.Warn().Int(KeyAttempt, a.failures).Str(KeyError, e.policy.Describe(cause)).Dur(KeyWait, event.Wait).Msg("the handler failed, trying again")
	}
	e.policy.Observe(event)
	return retry.Wait(ctx, event.Wait)
}

func (e *Engine) pause(a *attempt, cause error) time.Duration {
	if d, ok := inbox.RetryDelay(cause); ok {
		return d
	}
	return e.policy.Retry.Delay(a.failures, rand.Float64)
}

// held logs that the message has to wait for something that is not its own fault.
func (a *attempt) held(text string) {
	if a.state == nil {
		a.state = trouble.New(a.log, trouble.Texts{
			Fails: "message is held until the database or the dead letter topic serves again", Works: "message is not held any more",
			Level: zerolog.WarnLevel,
		})
	}
	a.state.Note(errors.New(text))
}

// released logs that a message which was held has come to its end.
func (a *attempt) released() {
	if a.state != nil {
		a.state.Note(nil)
	}
}

func (e *Engine) done(a *attempt, result inbox.Result) {
	outcome := inbox.OutcomeHandled
	if result == inbox.Duplicate {
		outcome = inbox.OutcomeDuplicate
	}
	a.released()
	a.log.Debug().Stringer("result", result).Msg("message is done")
	e.policy.Observe(inbox.Event{Outcome: outcome, Delivery: a.delivery})
}

// outcome is what an attempt returned.
type outcome struct {
	result inbox.Result
	err    error
}

// try makes one attempt. It runs in a goroutine of its own, so that a handler that ignores its context can't hold up a
// rebalance for ever: it is left behind, and Do will not commit for it.
func (e *Engine) try(work context.Context, d *inbox.Delivery) (inbox.Result, error) {
	ended := make(chan outcome, 1) // size 1: a handler that is left behind must be able to leave
	own := *d                      // it may still be read when the caller has gone on
	go func() {
		result, err := e.inbox.Do(work, own, func(ctx context.Context, tx *sql.Tx) error { return e.guarded(ctx, tx, &own) })
		ended <- outcome{result, err}
	}()
	select {
	case o := <-ended:
		return o.result, o.err
	case <-work.Done():
	}
	timer := time.NewTimer(e.settle)
	defer timer.Stop()
	select {
	case o := <-ended:
		return o.result, o.err
	case <-timer.C:
		return inbox.None, ErrDetached
	}
}

// guarded makes an error of the handler's panic: a message that panics is to be a dead letter, not the end of the
// process at each start.
func (e *Engine) guarded(ctx context.Context, tx *sql.Tx, d *inbox.Delivery) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &inbox.Panic{Value: value, Stack: debug.Stack()}
			e.log.Error().Str(KeyMessage, d.ID).Str(KeyTopic, d.Topic).Bytes("stack", debug.Stack()).Msg("the handler panicked")
		}
	}()
	return e.handler(ctx, tx, d)
}
