// Package relay is the pipeline of one source: binlog transactions in, Kafka records out, rows marked, checkpoint
// saved.
//
// The order of writes is Kafka ack, then the mark in MySQL, then the checkpoint in Redis; any other order loses or
// repeats. The package holds no client library: it moves values between canal, router, kafka, store and checkpoint.
//
//	Reader.Next --> pump --> lines --> producer --ack--> marker --settled--> Tracker --safe--> saver
//	                           ^                           ^
//	                           +------- sweeper -----------+
package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/sweeper"
)

// Deps is what a relay works with.
type Deps struct {
	// OpenReader connects to the server whose binlog is read. canal.ErrCannotStream tells that it can't be.
	OpenReader  func(ctx context.Context) (Reader, error)
	Tables      Tables
	Broker      Broker
	Checkpoints Checkpoints
	Lock        Lock
	Router      *router.Router
	// Upstream is nil when rows are marked on the server whose binlog is read.
	Upstream Upstream
	// Distance tells how far a position is behind the end of the binlog that is read; nil when none is.
	Distance func(ctx context.Context, from position.Position) (canal.Distance, error)
	Metrics  *metrics.Source
	// WhileLeading is what else the leader does. Each runs from when the lock is got until ctx ends, because the lock
	// may be lost or the process stops; the lock is given back only after it has returned.
	WhileLeading []func(ctx context.Context)
}

// Relay relays one source: as its leader while it holds the lock, standing by otherwise.
type Relay struct {
	cfg  Config
	deps Deps
	log  zerolog.Logger
	// reckoning goes on from session to session.
	reckoning *sweeper.Reckoning

	recoveries *recoveries
	// tablesErr is why the tables could not be read again last; the housekeeping owns it.
	tablesErr string

	mu sync.Mutex
	leading
	primary
	ticked time.Time
}

// leading is what this process does for the source, and has done.
type leading struct {
	role    Role
	session *session
	// streamed tells that a session has read the binlog before.
	streamed bool
	start    canal.Start
	lastErr  error
}

// primary is what is known of the primary.
type primary struct {
	// primaryErr is why it could not be asked last, nil when it could.
	primaryErr error
	asked      *trouble.Log // of primaryErr
	zone       time.Duration
	zoneSet    bool
}

// New returns a relay. Run starts it.
func New(cfg Config, deps Deps, log zerolog.Logger) *Relay {
	r := &Relay{cfg: cfg, deps: deps, log: log.With().Str("component", "relay").Logger(), leading: leading{role: RoleStandby}}
	r.ticked = time.Now()
	r.asked = trouble.New(r.log, trouble.Texts{
		Fails: "the primary can't be asked, will go on trying", Works: "the primary answers again", Level: zerolog.ErrorLevel,
	})
	r.recoveries = &recoveries{metrics: deps.Metrics, log: r.log}
	r.reckoning = sweeper.NewReckoning(deps.Metrics)
	r.observe()
	return r
}

// Run works until ctx ends, and returns nil then, after a clean stop. Any other return is an error that a person has
// to look at: ErrCannotStream in mode stream, a checkpoint of a newer version.
func (r *Relay) Run(ctx context.Context) error {
	ctx, stopTicking := context.WithCancel(ctx)
	defer stopTicking()
	var housekeeping sync.WaitGroup
	defer housekeeping.Wait()
	defer stopTicking()
	housekeeping.Go(func() { r.housekeep(ctx) })
	backoff := retry.Doubling(500*time.Millisecond, 10*time.Second).Attempts()
	for {
		began := time.Now()
		err := r.once(ctx)
		r.note(err)
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, canal.ErrCannotStream), errors.Is(err, checkpoint.ErrNewer):
			return err
		}
		r.setRole(RoleStandby) // now, not after the pause: metrics would show two leaders
		r.log.Warn().Err(err).Msg("leadership ends, standing by")
		if time.Since(began) > time.Minute {
			backoff.Reset()
		}
		if retry.Wait(ctx, backoff.Next()) != nil {
			return nil
		}
	}
}

// once waits for the lock and leads until the leadership ends.
func (r *Relay) once(ctx context.Context) error {
	r.setRole(RoleStandby)
	held, err := r.acquire(ctx)
	if err != nil {
		return nil // it is that ctx has ended
	}
	leading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-held.Lost():
			cancel(ErrLockLost)
		case <-leading.Done():
		}
	})
	for _, duty := range r.deps.WhileLeading {
		watch.Go(func() { duty(leading) })
	}
	err = r.lead(leading, held)
	cause := context.Cause(leading)
	cancel(nil)
	watch.Wait()
	if errors.Is(cause, ErrLockLost) {
		err = errors.Join(ErrLockLost, err)
	}
	release, done := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout) // released while stopping, too
	defer done()
	if releaseErr := held.Release(release); releaseErr != nil && !errors.Is(err, ErrLockLost) {
		r.log.Warn().Err(releaseErr).Msg("lock not released: a standby takes over when it expires")
	}
	return err
}

const releaseTimeout = 5 * time.Second

// acquire waits for the lock, also while its server can't be reached.
func (r *Relay) acquire(ctx context.Context) (Held, error) {
	var held Held
	err := persist(ctx, r.log, "acquire the leader's lock", func(ctx context.Context) (err error) {
		held, err = r.deps.Lock.Acquire(ctx)
		return err
	})
	return held, err
}

// delay returns how long after its commit a row with a next_retry_time is due, zero or less when it is due at once.
// The time is read in the server's time zone; one that can't be read (a zero date) is due.
func (r *Relay) delay(nextRetry string, committed time.Time) time.Duration {
	r.mu.Lock()
	zone, known := r.zone, r.zoneSet
	r.mu.Unlock()
	at, err := time.Parse("2006-01-02 15:04:05", nextRetry) // accepts a fraction too
	if err != nil {
		return 0
	}
	if !known {
		return time.Second // the sweeper compares in SQL: it is right whatever the zone
	}
	return at.Add(-zone).Sub(committed)
}

// Config is how one source is relayed. Every field must be set; package config has the defaults.
type Config struct {
	// Source names the checkpoint, the lock and the metric label.
	Source string
	// By is who saves checkpoints: host and process id.
	By   string
	Mode Mode
	// Start is where to begin when there is no checkpoint: StartNow or StartEarliest.
	Start string
	// SaveInterval is how often the checkpoint is saved.
	SaveInterval time.Duration

	Limits
	// Order is what is promised of it. Relaxed wins over Hold.
	Order order.Config

	Retry retry.Policy
	Sweep sweeper.Config
	// CreateTopics makes a topic that does not exist, instead of waiting for somebody to.
	CreateTopics bool
	// DedupeOnRestart reads the ends of the topics at a start, so that what was published and not marked is not sent
	// again.
	DedupeOnRestart bool
	// DrainTimeout bounds the clean stop.
	DrainTimeout time.Duration
}

// Limits bound what is on its way.
type Limits struct {
	InFlight      int   // unacked rows
	InFlightBytes int64 // unacked bytes
	Unmarked      int   // acked rows that are not marked yet
	MarkBatch     int   // rows that one UPDATE marks
	MarkDelay     time.Duration
}

// Mode says whether the binlog is read.
type Mode string

// The modes.
const (
	Auto   Mode = "auto"   // stream and sweep; sweep alone, loudly, while the stream can't run
	Stream Mode = "stream" // stream or fail
	Sweep  Mode = "sweep"  // never touch the binlog
)

// ClaimLease is how long a claim of the sweeper keeps others off a row.
const ClaimLease = 30 * time.Second

// persist calls do until it works, and logs what lasts. It returns ctx's error, or one that is retry.Final.
func persist(ctx context.Context, log zerolog.Logger, what string, do func(context.Context) error) error {
	state := trouble.New(log.With().Str("what", what).Logger(), trouble.Texts{
		Fails: "failed, will go on trying", Works: "works again", Level: zerolog.ErrorLevel,
	})
	return state.Until(ctx, retry.Doubling(200*time.Millisecond, 5*time.Second), do)
}
