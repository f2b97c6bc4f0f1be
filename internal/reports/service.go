// Package reports is the relay's part of reports back: consumers tell which messages they have consumed, and the rows get the
// status consumed.
//
// A Service takes reports from a topic and over HTTP, completes what consumers have written into the table of reports with
// SQL, and watches for messages that nobody reports. It guarantees that a record of the topic is committed only after the
// database has taken what it says, that junk is counted and never stops it, and that nothing of it runs but while the relay
// leads. What a report does to a row, and that none takes a row back, is package acks'; the format is inbox/report's.
package reports

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/reports/acks"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// Store is what a Service does to the tables; acks.Acks is the real one. It may be used concurrently.
type Store interface {
	Consume(ctx context.Context, rules acks.Rules, r report.Report) (report.Counts, error)
	Settle(ctx context.Context, rules acks.Rules, from acks.Cursor) (report.Counts, acks.Cursor, error)
	OldestUnreported(ctx context.Context, scan *acks.UnreportedScan, look int) (oldest *acks.SentMessage, complete bool, err error)
}

// Reader reads the topic of reports; kafka.ReportReader is the real one. One goroutine uses it.
type Reader interface {
	// Fetch waits a moment for records and returns each once; after an error it begins again at what is committed.
	Fetch(ctx context.Context) (values [][]byte, behind int64, err error)
	// Commit keeps that everything that was returned is done.
	Commit(ctx context.Context) error
	Close() error
}

// Groups tells how far consumer groups have read; kafka.Client is behind the real one.
type Groups interface {
	// ReadPast reports whether the group has read everything that the row's partition had got by the moment.
	ReadPast(ctx context.Context, group string, row *outbox.Row, moment time.Time) (bool, error)
}

// Config is how reports of one source are taken. Every field must be set unless it says otherwise.
type Config struct {
	Source string
	Rules  acks.Rules
	Store  Store
	// OpenReader opens the topic of reports; nil when none is read.
	OpenReader func() (Reader, error)
	Groups     Groups
	Metrics    *metrics.Source
}

// Service takes the reports of one source. Report may be called concurrently.
type Service struct {
	cfg  Config
	log  zerolog.Logger
	lead atomic.Bool
	// busy bounds the reports that are taken at the same time over HTTP.
	busy chan struct{}

	// Only the reading loop uses these: records that are no reports since that was last logged.
	junk     int
	toldJunk time.Time
}

// atOnce is how many requests are worked on at the same time; the database takes one report after the other anyway.
const atOnce = 16

var (
	// ErrNotLeading is returned while another relay leads the source, or none: ask that one, or later.
	ErrNotLeading = errors.New("this relay does not lead the source: ask the one that does, or again in a moment")
	// ErrOff is for who has no Service to ask.
	ErrOff = errors.New("reports are switched off: set acks.enabled")
	// ErrBusy is returned when too many reports are being taken.
	ErrBusy = errors.New("too many reports at the same time: send larger ones, or again in a moment")
)

// New returns a service. It does nothing before Run.
func New(cfg Config, log zerolog.Logger) *Service {
	return &Service{cfg: cfg, log: log.With().Str("component", "acks").Logger(), busy: make(chan struct{}, atOnce)}
}

// Run works until ctx ends; the relay runs it while it leads.
func (s *Service) Run(ctx context.Context) {
	s.lead.Store(true)
	var loops sync.WaitGroup
	if s.cfg.OpenReader != nil {
		loops.Go(func() { s.read(ctx) })
	}
	if s.cfg.Rules.NeedTable() {
		loops.Go(func() { s.settle(ctx) })
	}
	if len(s.cfg.Rules.Groups) > 0 {
		loops.Go(func() { s.watch(ctx) })
	}
	<-ctx.Done()
	s.lead.Store(false)
	loops.Wait()
	s.cfg.Metrics.Acks.Forget()
}

// Report takes a report that came over HTTP. It returns report.ErrInvalid for a report that is none, ErrNotLeading, ErrBusy,
// or the database's error; after all but the first it may be sent again.
func (s *Service) Report(ctx context.Context, r report.Report) (report.Counts, error) {
	if err := r.Validate(); err != nil {
		s.cfg.Metrics.Acks.Count(words.ViaHTTP, words.AckJunk, 1)
		return report.Counts{}, err
	}
	if !s.lead.Load() {
		return report.Counts{}, ErrNotLeading
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	default:
		return report.Counts{}, ErrBusy
	}
	counts, err := s.cfg.Store.Consume(ctx, s.cfg.Rules, r)
	s.count(words.ViaHTTP, counts)
	if err != nil {
		return counts, fmt.Errorf("take a report: %w", err)
	}
	return counts, nil
}

func (s *Service) count(via string, c report.Counts) {
	acks := &s.cfg.Metrics.Acks
	for result, n := range map[string]int{
		words.AckConsumed: c.Consumed, words.AckWaiting: c.Waiting, words.AckAlready: c.Already, words.AckUnknown: c.Unknown,
		words.AckAmbiguous: c.Ambiguous, words.AckIgnored: c.Ignored, words.AckStranger: c.Stranger,
	} {
		acks.Count(via, result, n)
	}
}
