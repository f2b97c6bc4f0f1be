package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Attempts counts the failures of one thing in a row and says how long to wait after each, by a policy. One goroutine
// uses it.
type Attempts struct {
	policy   Policy
	failures int
}

// Attempts begins to count.
func (p Policy) Attempts() *Attempts { return &Attempts{policy: p} }

// Next counts a failure and returns how long to wait before the next attempt.
func (a *Attempts) Next() time.Duration {
	a.failures++
	return a.policy.Delay(a.failures, rand.Float64)
}

// Reset begins again: call it when the thing was reached and has proved to work.
func (a *Attempts) Reset() { a.failures = 0 }

// Until calls do until it returns nil, waiting between the calls as the policy says. It gives up, and returns do's error,
// when that is Final or the policy's retries are spent; it returns ctx's error once ctx has ended. note, when it is not nil,
// is called with the result of each call, from the same goroutine, but not with what comes of a context that has ended.
func (p Policy) Until(ctx context.Context, note func(error), do func(context.Context) error) error {
	attempts := p.Attempts()
	for {
		err := do(ctx)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		final, isFinal := errors.AsType[*finalError](err)
		if isFinal {
			return final.error
		}
		if note != nil {
			note(err)
		}
		if err == nil || p.Spent(attempts.failures+1) {
			return err
		}
		if err := Wait(ctx, attempts.Next()); err != nil {
			return err
		}
	}
}

// Final marks an error that no other attempt can mend: Until returns it, unmarked, at once. nil stays nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &finalError{err}
}

type finalError struct{ error }

// Unwrap returns the cause.
func (e *finalError) Unwrap() error { return e.error }
