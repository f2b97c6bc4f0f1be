// Package sweeper recovers what the stream can't see or could not send: due rows of status pending and failed.
//
// It guarantees that it never sends a row that the stream still has to pass: it reads candidates, then the server's
// binlog end, waits until everything up to there is settled, and only then claims what is still pending. Rows are
// claimed in short transactions with SKIP LOCKED; no lock is held while Kafka is asked. It is also the one that probes
// closed topics and drains them in order (relay.Gate). Deciding who may sweep is left to the leader's lock.
package sweeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/retry"
)

// Config is how a sweeper works.
type Config struct {
	// Interval is the time between two passes when nothing asks for one earlier.
	Interval time.Duration
	// Batch is how many rows are claimed at once.
	Batch int
	// Grace keeps rows that were only just written out of a pass: the stream has them in its hands.
	Grace time.Duration
	// Lease is how long a claim keeps others off a row.
	Lease time.Duration
	Retry retry.Policy
}

// ErrBehind tells that the stream has not passed what the table shows: the pass is skipped, nothing is sent.
var ErrBehind = errors.New("the stream is behind")

// Sweeper makes passes. Run is for one caller; Kick and WakeIn may be called concurrently.
type Sweeper struct {
	cfg     Config
	rows    Rows
	gate    Gate
	keys    Keys
	stream  Stream
	router  Router
	out     Publisher
	metrics *metrics.Source
	log     zerolog.Logger
	// reckoning is nil where no binlog is read.
	reckoning *Reckoning

	// What follows belongs to the goroutine that makes the passes.
	retries map[string]retryAt // closed topics that were tried
	seen    scan
	kicked  bool // somebody knows of a row, however fresh

	kick chan struct{} // size 1: one waiting kick is enough

	mu    sync.Mutex
	due   time.Time // the nearest time that somebody asked for, zero when nobody did
	moved chan struct{}
	last  time.Time
	// expected is when somebody read of rows in the binlog last, and step how many of the looks after it were taken.
	expected time.Time
	step     int
}

// New returns a sweeper. The reckoning is nil where no binlog is read.
func New(cfg Config, rows Rows, gate Gate, keys Keys, stream Stream, route Router, out Publisher, m *metrics.Source, r *Reckoning, log zerolog.Logger) *Sweeper {
	return &Sweeper{
		cfg: cfg, rows: rows, gate: gate, keys: keys, stream: stream, router: route, out: out, metrics: m, reckoning: r, log: log,
		retries: make(map[string]retryAt), kick: make(chan struct{}, 1), moved: make(chan struct{}, 1), step: len(looks()),
	}
}

// Kick asks for a pass at once.
func (s *Sweeper) Kick() { poke(s.kick) }

// WakeIn asks for a pass when d has gone by: a row becomes due then.
func (s *Sweeper) WakeIn(d time.Duration) { s.wakeAt(time.Now().Add(d)) }

func (s *Sweeper) wakeAt(at time.Time) {
	s.mu.Lock()
	sooner := s.due.IsZero() || at.Before(s.due)
	if sooner {
		s.due = at
	}
	s.mu.Unlock()
	if sooner {
		poke(s.moved)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// LastPass returns when the last pass ended, zero before the first.
func (s *Sweeper) LastPass() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Run makes passes until ctx ends. A failing pass is logged when failing begins, and tried again.
func (s *Sweeper) Run(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		if due, ok, err := s.rows.NextDue(ctx); err == nil && ok {
			s.wakeAt(due)
		}
		result, err := s.Pass(ctx)
		if err == nil && !result.More { // what is left was told of by the same kick
			s.kicked = false
		}
		failing = s.report(ctx, result, err, failing)
		s.mu.Lock()
		s.last = time.Now()
		s.mu.Unlock()
		if err == nil && result.More {
			continue
		}
		s.sleep(ctx, s.pause(err))
	}
}

func (s *Sweeper) report(ctx context.Context, r Result, err error, failing bool) bool {
	switch {
	case ctx.Err() != nil:
		return failing
	case errors.Is(err, ErrBehind):
		s.metrics.SweepRounds.WithLabelValues(words.RoundSkipped).Inc()
		s.log.Debug().Msg("sweep skipped, the stream is behind")
		return failing
	case err != nil:
		s.metrics.SweepRounds.WithLabelValues(words.RoundFailed).Inc()
		if !failing {
			s.log.Error().Err(err).Msg("sweep failed, will go on trying")
		}
		return true
	}
	s.metrics.SweepRounds.WithLabelValues(words.RoundDone).Inc()
	if failing {
		s.log.Info().Msg("sweeps work again")
	}
	if r.Sent+r.Failed+r.Dead > 0 {
		s.log.Info().Int("sent", r.Sent).Int("failed", r.Failed).Int("dead", r.Dead).Msg("sweep recovered rows")
	}
	return false
}

// soonest keeps a run of due rows that can't be sent from turning the loop hot.
const soonest = 100 * time.Millisecond

// pause returns how long to wait for the next pass.
func (s *Sweeper) pause(err error) time.Duration {
	wait := s.cfg.Interval
	if err != nil {
		return min(wait, 2*time.Second)
	}
	probe, drain, gateWait := s.gate.Work(time.Now())
	if len(drain) > 0 || s.keys.Pending() {
		wait = min(wait, time.Second)
	}
	if gateWait > 0 {
		wait = min(wait, gateWait)
	}
	if len(probe) > 0 { // its time came while the pass went on
		wait = 0
	}
	return max(wait, soonest)
}

// sleep waits for d, a kick, or the nearest time that somebody asked for.
func (s *Sweeper) sleep(ctx context.Context, d time.Duration) {
	end := time.Now().Add(d)
	earliest := time.Now().Add(soonest)
	for {
		at := s.nearest(end)
		if at.Before(earliest) {
			at = earliest
		}
		left := time.Until(at)
		if left <= 0 {
			s.woken(at)
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.kick:
			timer.Stop()
			s.kicked = true
			s.lookEverywhere()
			return
		case <-s.moved:
			timer.Stop()
		case <-timer.C:
		}
	}
}
