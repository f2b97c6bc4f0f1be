// Package archive moves rows that are done with to the history of their table, so that the table stays small.
//
// It is the loop and the pass; the SQL is package history's. Each batch is one transaction, so that a row is in exactly one of the
// two tables whenever the process dies, and there is no state but the tables: a pass begins at the oldest rows. It guarantees
// that it keeps out of the services' way: batches and pauses follow what batches cost (pace), and nothing is moved while a replica
// is behind. Several may work at the same time: rows that another one has locked are passed over.
package archive

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
	"example.com/outbox-relay/store"
)

// Config is how rows are archived; which ones is history.Config.
type Config struct {
	// Interval is the time between two passes.
	Interval time.Duration
	// Batch is how many rows one transaction moves, at most.
	Batch int
}

// Archiver makes passes. It is for one caller at a time.
type Archiver struct {
	cfg     Config
	rows    Rows
	replica Replica // nil without one
	metrics *metrics.Source
	log     zerolog.Logger

	// reached is how far each lane was looked along beyond its young rows. It is kept between passes only to save work.
	reached map[lane]store.Spot
	pace    *pace
	asked   time.Time // when the replica was asked last
}

type lane struct {
	table  outbox.Table
	number int
}

// New returns an archiver. replica may be nil.
func New(cfg Config, rows Rows, replica Replica, m *metrics.Source, log zerolog.Logger) *Archiver {
	return &Archiver{
		cfg: cfg, rows: rows, replica: replica, metrics: m, log: log.With().Str("component", "archive").Logger(),
		reached: map[lane]store.Spot{}, pace: newPace(cfg.Batch),
	}
}

// afterFailure is how soon a pass that failed is tried again, at most.
const afterFailure = time.Minute

// Run makes passes until ctx ends. A failure is logged when it begins or changes, and tried again.
func (a *Archiver) Run(ctx context.Context) {
	state := trouble.New(a.log, trouble.Texts{Fails: "archiving failed, will go on trying", Works: "archiving works again", Level: zerolog.ErrorLevel})
	for ctx.Err() == nil {
		began := time.Now()
		result, err := a.Pass(ctx, false, nil)
		if ctx.Err() != nil {
			return
		}
		pause := a.cfg.Interval
		if err != nil {
			pause = min(pause, afterFailure)
		}
		state.Note(err)
		if result.Moved > 0 {
			a.log.Info().Int64("moved", result.Moved).Int64("looked_at", result.Looked).Dur("took", time.Since(began)).Msg("rows archived")
		}
		if retry.Wait(ctx, pause) != nil {
			return
		}
	}
}

// replicaTime is how far a replica may be behind before archiving waits for it.
const replicaTime = 10 * time.Second

// askEvery is how often the replica is asked.
const askEvery = 2 * time.Second

// untilApplied waits while the replica is behind. One that does not replicate at all keeps everything where it is.
func (a *Archiver) untilApplied(ctx context.Context) error {
	if a.replica == nil || time.Since(a.asked) < askEvery {
		return nil
	}
	defer a.paused(words.PausedReplica, false)
	state := trouble.New(a.log, trouble.Texts{Fails: "archiving waits for the replica", Works: "the replica has caught up", Level: zerolog.WarnLevel})
	for {
		bounded, cancel := context.WithTimeout(ctx, replicaTime)
		err := a.replica.Applied(bounded)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		state.Note(err)
		if err == nil {
			a.asked = time.Now()
			return nil
		}
		a.paused(words.PausedReplica, true)
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		if err := retry.Wait(ctx, askEvery); err != nil {
			return err
		}
	}
}

func (a *Archiver) paused(reason string, now bool) {
	value := 0.0
	if now {
		value = 1
	}
	a.metrics.Archive.Paused.WithLabelValues(reason).Set(value)
}
