package reports

import (
	"context"
	"maps"
	"slices"
	"time"

	"example.com/outbox-relay/internal/reports/acks"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
)

const (
	// watchEvery is how often it is looked for messages that nobody reports.
	watchEvery = 15 * time.Second
	// watchLook is how many further sent messages are looked at for a topic and group at a time, and restartEvery how often
	// all are looked at anew, since a message may be sent long after younger ones.
	watchLook    = 100_000
	restartEvery = 10 * time.Minute
	// markDelay is by how much a message's update_time may be behind its publishing at most, with the clocks of database
	// and relay: the record lies before this much after that time.
	markDelay = 2 * time.Second
)

// watched is a topic and one of the groups that have to report it.
type watched struct {
	topic, group string
	shared       bool
	scan         *acks.UnreportedScan
	restarted    time.Time
}

// watch keeps the metrics of unreported messages until ctx ends.
func (s *Service) watch(ctx context.Context) {
	pairs := s.pairs()
	state := trouble.New(s.log, texts("unreported messages can't be looked for"))
	for {
		var failed error
		for _, w := range pairs {
			if err := s.look(ctx, w); err != nil && failed == nil {
				failed = err
			}
		}
		if ctx.Err() != nil {
			return
		}
		state.Note(failed)
		if retry.Wait(ctx, watchEvery) != nil {
			return
		}
	}
}

func (s *Service) pairs() []*watched {
	var pairs []*watched
	for _, topic := range slices.Sorted(maps.Keys(s.cfg.Rules.Groups)) {
		groups := s.cfg.Rules.Groups[topic]
		for _, group := range groups {
			shared := len(groups) > 1
			pairs = append(pairs, &watched{
				topic: topic, group: group, shared: shared, restarted: time.Now(),
				scan: acks.NewUnreportedScan(acks.UnreportedQuery{Topic: topic, Group: group, Shared: shared}),
			})
		}
	}
	return pairs
}

// look brings the metrics of one pair up to date.
func (s *Service) look(ctx context.Context, w *watched) error {
	if time.Since(w.restarted) > restartEvery {
		w.scan.Restart()
		w.restarted = time.Now()
	}
	oldest, complete, err := s.cfg.Store.OldestUnreported(ctx, w.scan, watchLook)
	if err != nil {
		return err
	}
	labels := []string{s.cfg.Metrics.Topic(w.topic), w.group}
	age, past := s.cfg.Metrics.Acks.OldestUnreported, s.cfg.Metrics.Acks.ReadPast
	switch {
	case oldest != nil:
		age.WithLabelValues(labels...).Set(oldest.Age.Seconds())
	case complete:
		age.WithLabelValues(labels...).Set(0)
		past.DeleteLabelValues(labels...)
		return nil
	default:
		return nil // not looked at everything yet: what was known stays
	}
	if oldest.MarkedAt.IsZero() {
		past.DeleteLabelValues(labels...)
		return nil
	}
	read, err := s.cfg.Groups.ReadPast(ctx, w.group, &oldest.Row, oldest.MarkedAt.Add(markDelay))
	if err != nil {
		past.DeleteLabelValues(labels...)
		return err
	}
	value := 0.0
	if read {
		value = 1
	}
	past.WithLabelValues(labels...).Set(value)
	return nil
}
