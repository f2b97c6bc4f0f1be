package main

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// clock takes how long a test runs: the time in which at least one of its parts was running and not waiting for its turn.
// What go test says of a test leaves its parallel parts out; and a test with parts is there as long as they wait, so only
// parts without parts count.
type clock struct {
	since map[string]time.Time // those that run
	spans map[string][]span
}

type span struct{ from, to time.Time }

func (c *clock) goesOn(name string, at time.Time) {
	if c.since == nil {
		c.since, c.spans = map[string]time.Time{}, map[string][]span{}
	}
	c.since[name] = at
}

func (c *clock) stands(name string, at time.Time) {
	if from, runs := c.since[name]; runs {
		delete(c.since, name)
		c.spans[name] = append(c.spans[name], span{from, at})
	}
}

// total returns the length of all spans together, where they overlap only once.
func (c *clock) total() time.Duration {
	var all []span
	for name, spans := range c.spans {
		if !c.hasParts(name) {
			all = append(all, spans...)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
	var sum time.Duration
	var end time.Time
	for _, s := range all {
		if s.from.After(end) {
			end = s.from
		}
		if s.to.After(end) {
			sum, end = sum+s.to.Sub(end), s.to
		}
	}
	return sum
}

func (c *clock) hasParts(name string) bool {
	for other := range c.spans {
		if strings.HasPrefix(other, name+"/") {
			return true
		}
	}
	return false
}
