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
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/retry/trouble"
)

// saver adds up what has become safe and saves it. Redis being away delays the checkpoint and nothing else.
type saver struct {
	savedBy
	store   Checkpoints
	tracker *Tracker
	cursor  *canal.Cursor
	offsets func() map[string]map[int32]int64
	check   func() error // an error when nothing may be saved any more
	metrics *metrics.Source
	trouble *trouble.Log // of saving

	now chan struct{} // size 1: asks for a save before the next interval

	mu sync.Mutex
	saving
}

// savedBy is whose checkpoints they are.
type savedBy struct {
	source string
	by     string
	epoch  int64
}

// saving is how far a saver has come.
type saving struct {
	record checkpoint.Record // as it was last saved, or would be
	saved  time.Time
	dirty  bool
	err    error
	note   string // for the history: why the first save is not a plain step forward
	held   bool   // rows before the start are not recorded yet, so the position must not be saved
}

const (
	// saveTimeout bounds one attempt.
	saveTimeout = 3 * time.Second
	// refreshAfter is when an unchanged checkpoint is saved again, so that its age tells whether saving works.
	refreshAfter = 10 * time.Second
)

// run saves at every interval until ctx ends. The error is checkpoint.ErrFenced (or the cursor's, which means a bug
// or a server that changed its binlog under us): somebody else is the leader now, or an operator has set the
// position.
func (s *saver) run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	// At once, or a crash within the first interval would find no checkpoint.
	if err := s.save(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.now:
		}
		if err := s.save(ctx); err != nil {
			return err
		}
	}
}

// save saves what is safe now, if it has moved. Only errors that end the session are returned.
func (s *saver) save(ctx context.Context) error {
	// First the position, then the offsets: what is settled between the two is marked, and so skipped after a restart.
	moved, err := s.advance()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.dirty = s.dirty || moved
	due := !s.held && (s.dirty || time.Since(s.saved) >= refreshAfter)
	s.mu.Unlock()
	if !due {
		return nil
	}
	if err := s.check(); err != nil {
		return err
	}
	rec := s.build()
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	return s.outcome(rec, s.store.Save(ctx, s.source, rec))
}

func (s *saver) advance() (bool, error) {
	ends := s.tracker.TakeSafe()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range ends {
		if err := s.cursor.Advance(end); err != nil {
			return false, err
		}
	}
	return len(ends) > 0, nil
}

func (s *saver) build() checkpoint.Record {
	offsets := s.offsets()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = checkpoint.Record{
		Position: s.cursor.Position(), Offsets: offsets, Epoch: s.epoch, SavedAt: time.Now(), By: s.by, Note: s.note,
	}
	return s.record
}

// release lets the position be saved: everything before the start is recorded.
func (s *saver) release() {
	s.mu.Lock()
	s.held = false
	s.mu.Unlock()
	select {
	case s.now <- struct{}{}:
	default:
	}
}

// holding reports whether the position must not be saved yet.
func (s *saver) holding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// outcome takes the result of one attempt.
func (s *saver) outcome(rec checkpoint.Record, err error) error {
	s.mu.Lock()
	s.err = err
	if err == nil {
		s.saved, s.dirty, s.note = rec.SavedAt, false, ""
	}
	s.mu.Unlock()
	switch {
	case errors.Is(err, checkpoint.ErrFenced):
		s.metrics.CheckpointSaves.WithLabelValues(words.SaveFenced).Inc()
		return err
	case err != nil:
		s.metrics.CheckpointSaves.WithLabelValues(words.SaveFailed).Inc()
	default:
		s.metrics.CheckpointSaves.WithLabelValues(words.SaveOK).Inc()
	}
	s.trouble.Note(err)
	return nil
}

// newSaving follows whether the checkpoint can be saved.
func newSaving(log zerolog.Logger) *trouble.Log {
	return trouble.New(log, trouble.Texts{
		Fails: "checkpoint not saved, will go on trying; publishing goes on", Works: "checkpoint saved again", Level: zerolog.WarnLevel,
	})
}

// state returns the safe position and when the checkpoint was last saved, with the error of the last attempt.
func (s *saver) state() (pos position.Position, saved time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor.Position(), s.saved, s.err
}
