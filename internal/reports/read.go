package reports

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/reports/acks"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
	"example.com/outbox-relay/store"
)

// texts are what is logged of what fails again and again.
func texts(fails string) trouble.Texts {
	return trouble.Texts{Fails: fails + ", will go on trying", Works: "works again: " + fails, Level: zerolog.ErrorLevel}
}

// read reads the topic of reports until ctx ends.
func (s *Service) read(ctx context.Context) {
	state := trouble.New(s.log, texts("reports can't be read"))
	backoff := retry.Doubling(200*time.Millisecond, 10*time.Second).Attempts()
	for ctx.Err() == nil {
		err := s.readOn(ctx, func() {
			state.Note(nil)
			backoff.Reset()
		})
		if ctx.Err() != nil {
			return
		}
		state.Note(err)
		if retry.Wait(ctx, backoff.Next()) != nil {
			return
		}
	}
}

// readOn reads until something fails. works is called whenever records, or the news that there are none, have come.
func (s *Service) readOn(ctx context.Context, works func()) (err error) {
	reader, err := s.cfg.OpenReader()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for {
		values, behind, err := reader.Fetch(ctx)
		if err != nil {
			return err
		}
		works()
		s.cfg.Metrics.Acks.Behind.Set(float64(behind))
		if len(values) == 0 {
			continue
		}
		for _, r := range s.reports(values) {
			if err := s.takeAtLast(ctx, r); err != nil {
				return err
			}
		}
		// Only now: what was not taken must be read again by the next reader. Read again, it does no harm.
		if err := reader.Commit(ctx); err != nil {
			return err
		}
	}
}

// reports reads records and joins those of one group and topic.
func (s *Service) reports(values [][]byte) []report.Report {
	type kind struct{ group, topic string }
	index := map[kind]int{}
	var joined []report.Report
	junk := 0
	for _, value := range values {
		r, err := report.Decode(value)
		if err != nil {
			junk++
			continue
		}
		if r.Source != "" && r.Source != s.cfg.Source {
			continue // another relay's
		}
		k := kind{r.Group, r.Topic}
		i, seen := index[k]
		if !seen {
			i = len(joined)
			index[k] = i
			joined = append(joined, report.Report{Group: r.Group, Topic: r.Topic})
		}
		joined[i].MsgIDs = append(joined[i].MsgIDs, r.MsgIDs...)
	}
	s.skip(junk)
	return joined
}

// junkEvery is how often junk is logged: whoever may write to the topic must not be able to fill the log.
const junkEvery = time.Minute

// skip counts records that are no reports.
func (s *Service) skip(junk int) {
	s.cfg.Metrics.Acks.Count(words.ViaKafka, words.AckJunk, junk)
	s.junk += junk
	if s.junk > 0 && time.Since(s.toldJunk) > junkEvery {
		s.log.Warn().Int("count", s.junk).Msg("records of the topic of reports are no reports, skipped; docs/ACKS.md tells the format")
		s.junk, s.toldJunk = 0, time.Now()
	}
}

// refusedTries is how often a report is tried that the server refuses for a reason that nobody knows.
const refusedTries = 3

// takeAtLast takes a report however long the database is away. A report that the server refuses again and again is taken
// apart, and what it still refuses then is skipped: one odd id must not hold up all others.
func (s *Service) takeAtLast(ctx context.Context, r report.Report) error {
	var counts report.Counts
	refused := 0
	state := trouble.New(s.log, texts("reports can't be taken"))
	err := state.Until(ctx, retry.Doubling(100*time.Millisecond, 5*time.Second), func(ctx context.Context) (err error) {
		counts, err = s.cfg.Store.Consume(ctx, s.cfg.Rules, r)
		if errors.Is(err, store.ErrServer) {
			if refused++; refused == refusedTries {
				return retry.Final(err)
			}
		}
		return err
	})
	switch {
	case err == nil:
		s.count(words.ViaKafka, counts)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return s.takeApart(ctx, r, err)
}

func (s *Service) takeApart(ctx context.Context, r report.Report, cause error) error {
	if len(r.MsgIDs) == 1 {
		s.cfg.Metrics.Acks.Count(words.ViaKafka, words.AckJunk, 1)
		s.log.Error().Err(cause).Msg("the database refuses a reported msg_id, skipped")
		return nil
	}
	for half := range slices.Chunk(r.MsgIDs, (len(r.MsgIDs)+1)/2) {
		part := r
		part.MsgIDs = half
		if err := s.takeAtLast(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// settleEvery is how often the table of reports is looked through for what consumers have written into it themselves.
const settleEvery = 5 * time.Second

// settle completes what consumers have reported by SQL, page by page, until ctx ends.
func (s *Service) settle(ctx context.Context) {
	state := trouble.New(s.log, texts("the table of reports can't be read"))
	var at acks.Cursor
	for retry.Wait(ctx, settleEvery) == nil {
		counts, next, err := s.cfg.Store.Settle(ctx, s.cfg.Rules, at)
		if ctx.Err() != nil {
			return
		}
		state.Note(err)
		s.count(words.ViaSQL, counts)
		at = next
	}
}
