package retry

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Policy says when what failed is tried again and when its retries are spent. It is a value: safe to copy and to use from
// many goroutines as long as nobody writes to Backoff.
type Policy struct {
	// Backoff is the delay after the first failure, the second, and so on; the last one repeats.
	Backoff []time.Duration
	// Jitter spreads each delay by up to this share of it in both directions: 0.2 makes 8 to 12 seconds of 10.
	// It keeps the messages that failed together from coming back together.
	Jitter float64
	// MaxRetries is how many failures there may be before the last attempt; one more and the retries are spent.
	MaxRetries int
}

// Doubling returns the policy of attempts to reach something that is away, without an end. The delay after the first failure is
// drawn evenly from least to twice that, and the range doubles with each failure until it ends at most; so many relays which
// lost the same server do not return to it at the same moment. A least of zero or less becomes a millisecond, which keeps a loop
// from running hot, and a most below twice least becomes that.
func Doubling(least, most time.Duration) Policy {
	least = min(max(least, time.Millisecond), math.MaxInt64/4)
	most = max(most, 2*least)
	p := Policy{Jitter: 1.0 / 3, MaxRetries: math.MaxInt}
	// Two thirds and four thirds of a delay are the ends of its range.
	for low := least; low < most/2; low *= 2 {
		p.Backoff = append(p.Backoff, low/2*3)
	}
	p.Backoff = append(p.Backoff, most/4*3)
	return p
}

// Validate reports every problem of the policy at once.
func (p Policy) Validate() error {
	var errs []error
	if len(p.Backoff) == 0 {
		errs = append(errs, errors.New("backoff is empty: give at least one delay"))
	}
	for i, d := range p.Backoff {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("backoff[%d] is %s: a delay must be longer than 0", i, d))
		}
	}
	// Written so that a NaN is refused too.
	if !(p.Jitter >= 0 && p.Jitter <= 1) {
		errs = append(errs, fmt.Errorf("jitter is %g: it must be from 0 to 1", p.Jitter))
	}
	if p.MaxRetries < 1 {
		errs = append(errs, fmt.Errorf("max_retries is %d: it must be at least 1", p.MaxRetries))
	}
	return errors.Join(errs...)
}

// Delay returns how long to wait after failure number attempt, counted from 1. The random function returns values in [0, 1);
// nil means no jitter. A policy without a backoff list waits a second: it has not been validated, and a hot loop would be
// the worse answer.
func (p Policy) Delay(attempt int, random func() float64) time.Duration {
	if len(p.Backoff) == 0 {
		return time.Second
	}
	d := p.Backoff[min(max(attempt, 1), len(p.Backoff))-1]
	if random == nil || p.Jitter == 0 {
		return d
	}
	spread := 1 + p.Jitter*(2*random()-1)
	return saturate(float64(d) * spread)
}

// Spent reports whether no retry is left after this many failures.
func (p Policy) Spent(failures int) bool { return failures > p.MaxRetries }

// Longest returns the longest delay that the policy can give.
func (p Policy) Longest() time.Duration {
	if len(p.Backoff) == 0 {
		return time.Second
	}
	return saturate(float64(slices.Max(p.Backoff)) * (1 + p.Jitter))
}

// saturate turns nanoseconds into a duration without wrapping around: a negative wait would be no wait.
func saturate(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
