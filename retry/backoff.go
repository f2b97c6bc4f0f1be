package retry

import (
	"math/rand/v2"
	"time"
)

// Backoff spaces out attempts to reach something that is away: the bound doubles with each attempt from twice the minimum up
// to the maximum, and the delay is drawn evenly between the minimum and that bound (full jitter), so that many relays which lost
// the same server do not return to it at the same moment. One goroutine uses it.
type Backoff struct {
	least  time.Duration
	most   time.Duration
	bound  time.Duration
	random func() float64
}

// NewBackoff returns a backoff between least and most. A least of zero or less becomes a millisecond (it must never
// let a loop run hot), a most below least becomes least. The random function returns values in [0, 1); nil means the standard library's.
func NewBackoff(least, most time.Duration, random func() float64) *Backoff {
	least = max(least, time.Millisecond)
	if random == nil {
		random = rand.Float64
	}
	return &Backoff{least: least, most: max(most, least), bound: least, random: random}
}

// Next returns how long to wait before the next attempt.
func (b *Backoff) Next() time.Duration {
	if b.bound > b.most/2 {
		b.bound = b.most
	} else {
		b.bound *= 2
	}
	return b.least + time.Duration(b.random()*float64(b.bound-b.least))
}

// Reset starts again from the minimum: call it when the thing was reached and has proved to work.
func (b *Backoff) Reset() { b.bound = b.least }
