package harness

import (
	"database/sql"
	"fmt"
	"strings"
	"time"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/outbox"
)

// Judge waits until everything is settled and consumed, as long as that gets on within each limit, and until no more
// comes, and returns the verdict.
func (s *Scene) Judge(limit time.Duration, opts oracle.Options) *oracle.Verdict {
	s.t.Helper()
	begun := time.Now()
	Dwindles(limit, func() int { // the verdict says more about what is missing
		open, _ := unsettled(s.t.Context(), s.DB, s.Tables)
		return open
	})
	settled := time.Since(begun)
	rows, err := workload.Rows(s.t.Context(), s.DB, s.Tables...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("settled %s after the last commit", settled.Round(10*time.Millisecond))
	return s.JudgeRows(rows, opts)
}

// JudgeRows is Judge with the final rows of the tables as they are given, all of which are settled.
func (s *Scene) JudgeRows(rows []oracle.Row, opts oracle.Options) *oracle.Verdict {
	s.t.Helper()
	sent := 0
	for _, row := range rows {
		if row.Status != outbox.Dead {
			sent++
		}
	}
	Dwindles(10*time.Second, func() int { return sent - s.Log.Distinct() })
	s.Quiet()
	samples, fences := s.Sampler.Evidence()
	opts.Source = s.Source
	v := oracle.Judge(s.Ledger, oracle.Evidence{Records: s.Log.Records(), Rows: rows, Samples: samples, Fences: fences}, opts)
	s.t.Logf("%s", v)
	return v
}

// Exact is Judge for a run that must be without fault.
func (s *Scene) Exact(limit time.Duration, opts oracle.Options) *oracle.Verdict {
	s.t.Helper()
	v := s.Judge(limit, opts)
	if err := v.Err(); err != nil {
		s.t.Fatal(err)
	}
	return v
}

// ByStream fails the test when the sweeper has sent anything. Where a topic's first message took longer to be acked than the
// stream holds the next ones, those are given to the sweeper: that is a slow machine's doing and no fault.
func (s *Scene) ByStream(v *oracle.Verdict) {
	s.t.Helper()
	if v.Swept == 0 {
		return
	}
	for _, r := range s.relays {
		if strings.Contains(r.Log(), "probe takes long") {
			s.t.Logf("%d messages swept after a slow probe", v.Swept)
			return
		}
	}
	s.t.Errorf("%d messages came by the sweeper", v.Swept)
}

// quiet is how long nothing must come before a scene counts as quiet: a copy or a phantom would come after the rest.
const quiet = 500 * time.Millisecond

// Quiet waits until no record has come for a moment.
func (s *Scene) Quiet() {
	last, since := s.Log.Len(), time.Now()
	Patiently(10*time.Second, func() bool {
		if n := s.Log.Len(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > quiet
	})
}

// Patiently polls for a while and does not say whether it came true: a verdict says more about what is missing.
func Patiently(limit time.Duration, done func() bool) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return
		}
	}
}

// Seen waits until so many different messages were consumed.
func (s *Scene) Seen(n int, limit time.Duration) {
	s.t.Helper()
	Eventually(s.t, limit, "messages consumed", func() (bool, string) {
		got := s.Log.Distinct()
		return got >= n, fmt.Sprintf("%d of %d", got, n)
	})
}

// CaughtUp waits until the saved checkpoint has reached the binlog's present end.
func (s *Scene) CaughtUp(limit time.Duration) {
	s.t.Helper()
	s.SavedAt(s.Binlog, limit)
}

// Saved returns the saved position.
func (s *Scene) Saved() position.Position {
	s.t.Helper()
	saved, err := s.Sampler.Checkpoint.Read(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return saved.Position
}

// SavedAt waits until the saved checkpoint has reached the present end of a server's binlog.
func (s *Scene) SavedAt(db *sql.DB, limit time.Duration) {
	s.t.Helper()
	end, err := BinlogEnd(s.t.Context(), db, s.Cast.SQL.Flavor)
	if err != nil {
		s.t.Fatal(err)
	}
	Eventually(s.t, limit, "checkpoint at the binlog's end "+end.String(), func() (bool, string) {
		saved, err := s.Sampler.Checkpoint.Read(s.t.Context())
		if err != nil {
			return false, err.Error()
		}
		order, err := position.Compare(end.File, end.Pos, saved.Position.File, saved.Position.Pos)
		return err == nil && order <= 0, "saved " + saved.Position.String()
	})
}

// Statuses counts the rows of the first table by status.
func (s *Scene) Statuses() map[int]int {
	s.t.Helper()
	rows, err := s.DB.QueryContext(s.t.Context(), "SELECT status, COUNT(*) FROM "+s.Tables[0]+" GROUP BY status")
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	counts := map[int]int{}
	for rows.Next() {
		var status, n int
		if err := rows.Scan(&status, &n); err != nil {
			s.t.Fatal(err)
		}
		counts[status] = n
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return counts
}

// Epoch returns the epoch of the leader that saved the checkpoint.
func (s *Scene) Epoch() int64 {
	s.t.Helper()
	saved, err := s.Sampler.Checkpoint.Read(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return saved.Epoch
}
