package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
	"example.com/outbox-relay/store"
)

// outcome is what the table is to say about a row.
type outcome uint8

const (
	outcomeSent outcome = iota
	outcomeFailed
	outcomeDead
	outcomeDeferred
	outcomeParked
)

// verdict is one row's outcome on its way into the table.
type verdict struct {
	it      *item
	outcome outcome
	text    string // for last_error
	// memory of a failure, so that it is counted once however often it is written.
	memory *store.Memory
}

// marker writes outcomes into the table in batches and settles them. One goroutine (run) does the writing, in the
// order of the outcomes; anyone may add. What waits is bounded by the unmarked window, which the pump acquires.
//
// A database that can't be written to is waited for: nothing is settled meanwhile, and publishing goes on until the
// window is full.
type marker struct {
	rows    Marks
	cfg     markerConfig
	settled func(verdicts []verdict)
	log     zerolog.Logger

	mu      sync.Mutex
	queue   []verdict
	writing []verdict
	closed  bool
	wake    chan struct{} // size 1: a pending wake-up is enough
	failing error
	state   *trouble.Log // of failing
	stranded
}

// stranded are outcomes for rows of tables that are gone; they are tried again now and then.
type stranded struct {
	strays  []verdict
	gone    error     // why
	missing *recovery // while there are some
	tried   time.Time
}

type markerConfig struct {
	// check returns an error when nothing may be written any more.
	check   func() error
	batch   int
	delay   time.Duration
	policy  retry.Policy
	notes   *recoveries
	observe func(time.Duration)
}

func newMarker(rows Marks, cfg markerConfig, settled func([]verdict), log zerolog.Logger) *marker {
	return &marker{
		rows: rows, cfg: cfg, settled: settled, log: log, wake: make(chan struct{}, 1),
		state: trouble.New(log, trouble.Texts{
			Fails: "rows can't be marked, will go on trying", Works: "rows are marked again", Level: zerolog.ErrorLevel,
		}),
	}
}

// add queues an outcome. It never blocks.
func (m *marker) add(v verdict) {
	if v.outcome == outcomeFailed {
		v.memory = new(store.Memory)
	}
	m.mu.Lock()
	m.queue = append(m.queue, v)
	enough := len(m.queue) == 1 || len(m.queue) == m.cfg.batch
	m.mu.Unlock()
	if enough {
		m.poke()
	}
}

// finish tells that no more outcomes come; run returns once all are written.
func (m *marker) finish() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.poke()
}

func (m *marker) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// waiting calls visit for each outcome that is not settled, in the order they came.
func (m *marker) waiting(visit func(*verdict)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.writing {
		visit(&m.writing[i])
	}
	for i := range m.queue {
		visit(&m.queue[i])
	}
	for i := range m.strays {
		visit(&m.strays[i])
	}
}

// depth returns how many outcomes wait.
func (m *marker) depth() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queue) + len(m.writing) + len(m.strays)
}

// err returns why the last write failed, nil while writing works.
func (m *marker) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone != nil {
		return errors.Join(m.failing, fmt.Errorf("%d rows wait: %w", len(m.strays), m.gone))
	}
	return m.failing
}

// run writes until finish was called and everything is written, or until ctx ends. What belongs to a table that is
// gone stays unsettled.
func (m *marker) run(ctx context.Context) error {
	for {
		batch, more := m.take(ctx)
		if len(batch) > 0 {
			written, err := m.write(ctx, batch)
			if err != nil {
				return err
			}
			m.mu.Lock()
			m.writing = nil
			m.mu.Unlock()
			m.settled(written)
		}
		m.retryStrays(ctx, !more)
		if !more {
			return ctx.Err()
		}
	}
}

// take waits for outcomes, a little longer for a full batch, and returns at most one batch of them. more is false once
// nothing will come.
func (m *marker) take(ctx context.Context) (batch []verdict, more bool) {
	var linger <-chan time.Time
	again, stop := m.strayTimer()
	defer stop()
	for {
		m.mu.Lock()
		n := len(m.queue)
		if n >= m.cfg.batch || m.closed {
			more := !m.closed || n > 0 // cut unlocks
			return m.cut(), more
		}
		m.mu.Unlock()
		if n > 0 && linger == nil {
			timer := time.NewTimer(m.cfg.delay)
			defer timer.Stop()
			linger = timer.C
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-m.wake:
		case <-again:
			return nil, true
		case <-linger:
			m.mu.Lock()
			return m.cut(), true
		}
	}
}

// cut takes the next batch off the queue. The caller holds mu; cut unlocks it.
func (m *marker) cut() []verdict {
	defer m.mu.Unlock()
	n := min(len(m.queue), m.cfg.batch)
	m.writing = m.queue[:n:n]
	m.queue = m.queue[n:]
	return m.writing
}

// write brings one batch into the table, however often it takes, and returns what was written: all but what belongs to
// tables that are gone.
func (m *marker) write(ctx context.Context, batch []verdict) (written []verdict, err error) {
	backoff := retry.Doubling(100*time.Millisecond, 5*time.Second).Attempts()
	for {
		if err := m.cfg.check(); err != nil {
			return nil, err
		}
		start := time.Now()
		err := m.writeOnce(ctx, batch)
		if errors.Is(err, store.ErrGone) {
			batch, err = m.setAside(ctx, batch)
		}
		m.note(err)
		if err == nil {
			m.cfg.observe(time.Since(start))
			return batch, nil
		}
		if err := retry.Wait(ctx, backoff.Next()); err != nil {
			return nil, err
		}
	}
}

// note takes the outcome of an attempt.
func (m *marker) note(err error) {
	m.mu.Lock()
	m.failing = err
	m.mu.Unlock()
	m.state.Note(err)
}

func (m *marker) writeOnce(ctx context.Context, batch []verdict) error {
	var sent, deferred []outbox.Ref
	var failed, dead []store.Failure
	var parked []store.Parking
	for _, v := range batch {
		ref := v.it.ref
		switch v.outcome {
		case outcomeSent:
			sent = append(sent, ref)
		case outcomeDeferred:
			deferred = append(deferred, ref)
		case outcomeParked:
			parked = append(parked, store.Parking{Ref: ref, Slot: v.it.slot})
		case outcomeFailed:
			failed = append(failed, store.Failure{
				Ref: ref, Delay: m.cfg.policy.Delay(v.it.retries+1, rand.Float64), Error: v.text,
				MaxRetries: m.cfg.policy.MaxRetries, Memory: v.memory,
			})
		case outcomeDead:
			dead = append(dead, store.Failure{Ref: ref, Error: v.text})
		}
	}
	if len(sent) > 0 {
		if _, err := m.rows.MarkSent(ctx, sent); err != nil {
			return err
		}
	}
	if len(deferred) > 0 {
		if err := m.rows.Defer(ctx, deferred); err != nil {
			return err
		}
	}
	if len(dead) > 0 {
		if err := m.rows.MarkDead(ctx, dead); err != nil {
			return err
		}
	}
	if len(parked) > 0 {
		if err := m.rows.Park(ctx, parked); err != nil {
			return err
		}
	}
	// Everything before it may be written twice without harm. This counts up, and may be repeated because of the memory.
	if len(failed) > 0 {
		if _, err := m.rows.MarkFailed(ctx, failed); err != nil {
			return err
		}
	}
	return nil
}
