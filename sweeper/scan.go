package sweeper

import (
	"context"
	"slices"
	"time"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// scan remembers up to which next_retry_time nothing is due but rows of closed topics, so that a million rows of a topic that does not
// exist are not read again in each pass.
type scan struct {
	upTo   string // as the database prints it; "" means that everything is to be read
	closed []string
	whole  time.Time // when everything was last read
}

// wholeEvery is when everything is read again: a row may have been written with a next_retry_time long past.
const wholeEvery = 2 * time.Minute

// candidates reads the due rows of topics that are not closed.
func (s *Sweeper) candidates(ctx context.Context, closed []string) ([]outbox.Row, error) {
	slices.Sort(closed)
	if !slices.Equal(closed, s.seen.closed) || time.Since(s.seen.whole) > wholeEvery {
		s.seen = scan{closed: closed, whole: time.Now()}
	}
	now, err := s.rows.Now(ctx)
	if err != nil {
		return nil, err
	}
	grace := s.cfg.Grace
	if s.kicked {
		grace = 0 // it only spares rows that the stream has in its hands, which Passed waits for
	}
	rows, err := s.rows.Candidates(ctx, store.Query{Limit: s.cfg.Batch, Grace: grace, Except: closed, DueFrom: s.seen.upTo})
	if err == nil && len(rows) == 0 && len(closed) > 0 {
		s.seen.upTo = now
	}
	return rows, err
}
