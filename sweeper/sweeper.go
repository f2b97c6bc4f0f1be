// Package sweeper recovers what the stream can't see or could not send: due rows of status pending and failed.
//
// It guarantees that it never sends a row that the stream still has to pass: it reads candidates, then the server's
// binlog end, waits until everything up to there is settled, and only then claims what is still pending. Rows are
// claimed in short transactions with SKIP LOCKED; no lock is held while Kafka is asked. It is also the one that probes
// closed topics and drains lines in order (package order). Deciding who may sweep is left to the leader's lock.
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
	"example.com/outbox-relay/retry/trouble"
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

// Sweeper makes passes. Run is for one caller.
type Sweeper struct {
	cfg     Config
	rows    Tables
	lines   Lines
	letters Letters
	stream  Stream
	outlet
	account
	search
	alarm *Alarm

	mu   sync.Mutex
	last time.Time
}

// outlet is the way to Kafka.
type outlet struct {
	router Router
	out    Publisher
	broker Broker
}

// account is where rows are counted and passes logged.
type account struct {
	state   *trouble.Log // of passes
	metrics *metrics.Source
	// reckoning is nil where no binlog is read.
	reckoning *Reckoning
	log       zerolog.Logger
}

// search is what passes remember. It belongs to the goroutine that makes them.
type search struct {
	retries map[string]retryAt // closed topics that were tried
	seen    scan
	kicked  bool // somebody knows of a row, however fresh
}

// Parts are what a sweeper works with.
type Parts struct {
	Tables  Tables
	Lines   Lines
	Letters Letters
	Stream  Stream
	Router  Router
	Out     Publisher
	Broker  Broker
	Alarm   *Alarm
	Metrics *metrics.Source
	// Reckoning is nil where no binlog is read.
	Reckoning *Reckoning
	Log       zerolog.Logger
}

// New returns a sweeper.
func New(cfg Config, p Parts) *Sweeper {
	return &Sweeper{
		cfg: cfg, rows: p.Tables, lines: p.Lines, letters: p.Letters, stream: p.Stream, alarm: p.Alarm,
		outlet: outlet{router: p.Router, out: p.Out, broker: p.Broker},
		account: account{
			metrics: p.Metrics, reckoning: p.Reckoning, log: p.Log,
			state: trouble.New(p.Log, trouble.Texts{Fails: "sweep failed, will go on trying", Works: "sweeps work again", Level: zerolog.ErrorLevel}),
		},
		search: search{retries: make(map[string]retryAt)},
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
	for ctx.Err() == nil {
		if due, ok, err := s.rows.NextDue(ctx); err == nil && ok {
			s.alarm.wakeAt(due)
		}
		result, err := s.Pass(ctx)
		if err == nil && !result.More { // what is left was told of by the same kick
			s.kicked = false
		}
		s.report(ctx, result, err)
		s.mu.Lock()
		s.last = time.Now()
		s.mu.Unlock()
		if err == nil && result.More {
			continue
		}
		kicked, everywhere := s.alarm.sleep(ctx, s.pause(err))
		s.kicked = s.kicked || kicked
		if everywhere {
			s.lookEverywhere()
		}
	}
}

func (s *Sweeper) report(ctx context.Context, r Result, err error) {
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, ErrBehind):
		s.metrics.SweepRounds.WithLabelValues(words.RoundSkipped).Inc()
		s.log.Debug().Msg("sweep skipped, the stream is behind")
		return
	case err != nil:
		s.metrics.SweepRounds.WithLabelValues(words.RoundFailed).Inc()
		s.state.Note(err)
		return
	}
	s.metrics.SweepRounds.WithLabelValues(words.RoundDone).Inc()
	s.state.Note(nil)
	if r.Sent+r.Failed+r.Dead > 0 {
		s.log.Info().Int("sent", r.Sent).Int("failed", r.Failed).Int("dead", r.Dead).Msg("sweep recovered rows")
	}
}

// pause returns how long to wait for the next pass.
func (s *Sweeper) pause(err error) time.Duration {
	wait := s.cfg.Interval
	if err != nil {
		return min(wait, 2*time.Second)
	}
	w := s.lines.Work(time.Now())
	if len(w.Drain)+len(w.Release) > 0 {
		wait = min(wait, time.Second)
	}
	if w.Wait > 0 {
		wait = min(wait, w.Wait)
	}
	if len(w.Probe) > 0 { // its time came while the pass went on
		wait = 0
	}
	return max(wait, soonest)
}
