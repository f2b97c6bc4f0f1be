package sweeper

import (
	"context"
	"slices"
	"time"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// scan remembers up to which next_retry_time nothing is due but rows of closed topics, so that a million rows of a
// topic that does not exist are not read again in each pass.
type scan struct {
	upTo   string // as the database prints it; "" means that everything is to be read
	closed []string
	whole  time.Time // when everything was last read
	// progress is how far that reading has come: it takes many passes, so that none of them is long.
	progress *store.Progress
	again    bool // somebody has asked for another reading meanwhile
}

// wholeEvery is when everything is read again: a row may have been written with a next_retry_time long past.
const wholeEvery = 2 * time.Minute

// lookEverywhere forgets what saves a pass work: somebody may have put a row anywhere, or have repaired a topic. A
// reading of everything that has begun is ended first, or it never would be where that is asked for often.
func (s *Sweeper) lookEverywhere() {
	clear(s.retries)
	if s.seen.progress.Begun() {
		s.seen.again = true
		return
	}
	s.seen = scan{}
}

// againAfter is how long after a reading of everything the one is begun that was asked for meanwhile.
const againAfter = time.Second

// candidates reads the due rows of topics that are not closed. more tells that only a part was looked at.
func (s *Sweeper) candidates(ctx context.Context, closed []string) (rows []outbox.Row, more bool, err error) {
	slices.Sort(closed)
	if !slices.Equal(closed, s.seen.closed) || time.Since(s.seen.whole) > wholeEvery {
		s.seen = scan{closed: closed, whole: time.Now()}
	}
	if s.seen.progress == nil {
		s.seen.progress = &store.Progress{}
	}
	now, err := s.rows.Now(ctx)
	if err != nil {
		return nil, false, err
	}
	grace := s.cfg.Grace
	if s.kicked {
		grace = 0 // it only spares rows that the stream has in its hands, which Passed waits for
	}
	rows, err = s.rows.Candidates(ctx, store.Query{
		Limit: s.cfg.Batch, Grace: grace, Except: closed, DueFrom: s.seen.upTo, Progress: s.seen.progress,
	})
	if err != nil || len(closed) == 0 || len(rows) == s.cfg.Batch || slices.ContainsFunc(rows, hasTime) {
		return rows, false, err // what was found stands where the next pass looks again
	}
	if s.seen.progress.Advance() {
		return rows, true, nil
	}
	switch {
	case s.seen.again:
		s.seen = scan{closed: closed, whole: time.Now()}
		s.alarm.WakeIn(againAfter)
	case len(rows) == 0:
		s.seen.upTo = now
	}
	return rows, false, nil
}

// hasTime tells the rows that progress is about from those that each pass reads.
func hasTime(row outbox.Row) bool { return row.NextRetry != "" }
