// Package trouble logs what fails again and again: once when it begins, when its cause changes, rarely while it lasts, and
// once when it is over. Each failure in between is silent.
package trouble

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/retry"
)

// Texts are the fixed phrases that a Log writes.
type Texts struct {
	// Fails is logged when it begins, when the cause changes and while it lasts; Works when it is over.
	Fails, Works string
	// Level of Fails; the zero value is Debug, so it is always given. Works is Info.
	Level zerolog.Level
	// After is how long it may last before anything is logged: what recovers sooner is nobody's business.
	After time.Duration
}

const (
	// changeEvery bounds the lines about causes that change: an address with a random port in it makes each one new.
	changeEvery = time.Minute
	// lastsEvery is how often what lasts is logged again.
	lastsEvery = 10 * time.Minute
)

// Log follows one thing that may fail. It may be used concurrently.
type Log struct {
	log   zerolog.Logger
	texts Texts

	mu       sync.Mutex
	err      error // the last failure, nil while it works
	failures int   // in a row
	since    time.Time
	logged   time.Time // when the last line about it was written, zero: none yet
	cause    string    // as in that line
}

// New returns a Log of something that works.
func New(log zerolog.Logger, texts Texts) *Log { return &Log{log: log, texts: texts} }

// Note takes the outcome of an attempt: its error, or nil when it worked.
func (l *Log) Note(err error) {
	if line := l.next(err); line != nil {
		line()
	}
}

// next returns what is to be logged, nil for nothing.
func (l *Log) next(err error) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.failures == 0 {
		return nil
	}
	now := time.Now()
	if err == nil {
		failures, since, logged := l.failures, l.since, !l.logged.IsZero()
		l.err, l.failures, l.logged, l.cause = nil, 0, time.Time{}, ""
		if !logged {
			return nil
		}
		return func() { l.log.Info().Int("failures", failures).Dur("after", now.Sub(since)).Msg(l.texts.Works) }
	}
	if l.failures == 0 {
		l.since = now
	}
	l.err = err
	l.failures++
	lasted, quiet := now.Sub(l.since), now.Sub(l.logged)
	begins := l.logged.IsZero() && lasted >= l.texts.After
	changes := !l.logged.IsZero() && quiet >= changeEvery && l.cause != err.Error()
	lasts := !l.logged.IsZero() && quiet >= lastsEvery
	if !begins && !changes && !lasts {
		return nil
	}
	l.logged, l.cause = now, err.Error()
	failures := l.failures
	return func() {
		event := l.log.WithLevel(l.texts.Level).Err(err)
		if failures > 1 {
			event = event.Int("failures", failures).Dur("for", lasted)
		}
		event.Msg(l.texts.Fails)
	}
}

// Err returns the last failure with how long it has lasted, nil while it works and before it was logged.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logged.IsZero() {
		return nil
	}
	return fmt.Errorf("for %s: %w", time.Since(l.since).Round(time.Second), l.err)
}

// Until is policy.Until with its results noted.
func (l *Log) Until(ctx context.Context, policy retry.Policy, do func(context.Context) error) error {
	return policy.Until(ctx, l.Note, do)
}
