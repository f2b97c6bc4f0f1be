package relay

import (
	"context"
	"time"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/retry"
)

const (
	// housekeepEvery is how often the relay shows that it lives and reads the server's time zone.
	housekeepEvery = 5 * time.Second
	// surveyEvery is how often the leader reads what takes longer: counts, new tables, the distance to the binlog's end.
	surveyEvery = 15 * time.Second
	// surveyTimeout bounds each of those.
	surveyTimeout = 5 * time.Second
)

// housekeep reads the facts that no loop of a session reads, until ctx ends. What can't be read stays as it was.
func (r *Relay) housekeep(ctx context.Context) {
	var surveyed time.Time
	for {
		r.notePrimary(ctx, r.readZone(ctx))
		if s := r.current(); s != nil && time.Since(surveyed) >= surveyEvery {
			surveyed = time.Now()
			r.survey(ctx, s)
		}
		r.mu.Lock()
		r.ticked = time.Now()
		r.mu.Unlock()
		if retry.Wait(ctx, housekeepEvery) != nil {
			return
		}
	}
}

func (r *Relay) readZone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	offset, err := r.deps.Tables.Survey.Offset(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.zone, r.zoneSet = offset, true
	return nil
}

// notePrimary remembers whether the primary can be asked: a relay that stands by has no other way to know.
func (r *Relay) notePrimary(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	r.primaryErr = err
	r.mu.Unlock()
	r.asked.Note(err)
}

func (r *Relay) current() *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session
}

// survey reads what the metrics show of the table and of the binlog.
func (r *Relay) survey(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	r.noteTables(r.deps.Tables.Survey.Refresh(ctx))
	if counts, oldest, err := r.deps.Tables.Survey.Count(ctx); err == nil {
		for status, n := range counts {
			r.deps.Metrics.TableRows.WithLabelValues(status.String()).Set(float64(n))
		}
		r.deps.Metrics.OldestPending.Set(oldest.Seconds())
	}
	if rows, keys, err := r.deps.Tables.Survey.CountParked(ctx); err == nil {
		r.deps.Metrics.ParkedMessages.Set(float64(rows))
		r.deps.Metrics.ParkedKeys.Set(float64(keys))
	}
	if s.saver == nil || r.deps.Distance == nil {
		return
	}
	safe, _, _ := s.saver.state()
	if d, err := r.deps.Distance(ctx, safe); err == nil {
		r.noteDistance(d)
	}
}

// noteTables tells once when the tables can't be read again: a new shard is not known then, and so can't be marked.
func (r *Relay) noteTables(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != r.tablesErr {
		r.log.Warn().Err(err).Msg("tables not read again, new ones can't be marked")
	}
	r.tablesErr = text
}

func (r *Relay) noteDistance(d canal.Distance) {
	r.deps.Metrics.LagBytes.Set(float64(d.BytesBehind))
	if d.KnownPurge {
		r.deps.Metrics.HeadroomSeconds.Set(d.PurgedIn.Seconds())
	}
}
