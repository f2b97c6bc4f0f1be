package reports_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/reports"
	"example.com/outbox-relay/internal/reports/acks"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

func TestReportsFromTheTopic(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		s.topic.records = [][]byte{
			encoded(t, report.Report{Group: "points", MsgIDs: []string{"a", "b"}}),
			[]byte("junk"), nil,
			encoded(t, report.Report{Source: "other", Group: "points", MsgIDs: []string{"theirs"}}),
			encoded(t, report.Report{Source: "shop", Group: "points", MsgIDs: []string{"c"}}),
			encoded(t, report.Report{Group: "points", Topic: "orders", MsgIDs: []string{"d"}}),
			encoded(t, report.Report{Group: "audit", MsgIDs: []string{"a"}}),
		}
		s.start()
		assert.Equal(t, []string{"audit/:a", "points/:a", "points/:b", "points/:c", "points/orders:d"}, s.rows.list())
		assert.Equal(t, 3, s.rows.calls, "reports of one group and topic go together")
		assert.Equal(t, 7, s.topic.committed)
		assert.Equal(t, map[string]float64{"consumed kafka": 5, "junk kafka": 2}, s.series("acks_total"))
		assert.Equal(t, map[string]float64{"": 0}, s.series("acks_behind_records"))
		s.end()
		assert.Equal(t, 1, s.topic.closed)
		assert.Empty(t, s.series("acks_behind_records"), "a relay that leads no more knows nothing of it")
	})
}

// Nothing is committed before the database has it: a relay that ends in between, or is killed, leaves it to the next one.
func TestReportsAreCommittedAfterTheyAreTaken(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		away := true
		s := newStage(t, nil)
		s.rows.fail = func(report.Report) error {
			if away {
				return fmt.Errorf("take: %w", store.ErrUnreachable)
			}
			return nil
		}
		s.topic.records = [][]byte{encoded(t, report.Report{Group: "points", MsgIDs: []string{"a"}})}
		s.start()
		later(time.Minute)
		s.end()
		assert.Zero(t, s.topic.committed)
		assert.Greater(t, s.rows.calls, 5)
		assert.Less(t, s.rows.calls, 60, "a database that is away is not hammered")
		away = false
		next := newStage(t, func(cfg *reports.Config) { cfg.Store, cfg.OpenReader = s.rows, s.topic.open })
		next.start()
		assert.Equal(t, []string{"points/:a"}, s.rows.list())
		assert.Equal(t, 1, s.topic.committed)
		next.end()
	})
}

// One id that the database refuses for a reason that nobody knows does not hold up the others for ever.
func TestARefusedReportIsTakenApart(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		s.rows.fail = func(r report.Report) error {
			if slices.Contains(r.MsgIDs, "odd") {
				return fmt.Errorf("take: %w", store.ErrServer)
			}
			return nil
		}
		s.topic.records = [][]byte{encoded(t, report.Report{Group: "points", MsgIDs: []string{"a", "b", "odd", "c", "d"}})}
		s.start()
		later(2 * time.Minute)
		assert.Equal(t, []string{"points/:a", "points/:b", "points/:c", "points/:d"}, s.rows.list())
		assert.Equal(t, 1, s.topic.committed)
		assert.InDelta(t, 1, s.series("acks_total")["junk kafka"], 0)
		s.end()
	})
}

func TestTheTopicIsWaitedFor(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		s.topic.failing = errors.New("unknown topic")
		s.start()
		later(10 * time.Minute)
		s.topic.change(func() {
			assert.Greater(t, s.topic.opened, 10)
			assert.Less(t, s.topic.opened, 200)
			assert.Equal(t, s.topic.opened, s.topic.closed)
			s.topic.failing = nil
			s.topic.noCommit = errors.New("no coordinator")
			s.topic.records = [][]byte{encoded(t, report.Report{MsgIDs: []string{"a"}})}
		})
		later(15 * time.Second)
		s.topic.change(func() { s.topic.noCommit = nil })
		later(15 * time.Second)
		s.end()
		assert.Equal(t, 1, s.topic.committed)
		assert.Greater(t, len(s.rows.list()), 1, "what was not committed is taken again, which does no harm")
	})
}

func TestReportsOverHTTPAreTheLeadersOnly(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := newStage(t, func(cfg *reports.Config) { cfg.OpenReader = nil })
		one := report.Report{Group: "points", MsgIDs: []string{"a"}}
		_, err := s.Report(t.Context(), one)
		require.ErrorIs(t, err, reports.ErrNotLeading)
		s.start()
		counts, err := s.Report(t.Context(), one)
		require.NoError(t, err)
		assert.Equal(t, report.Counts{Consumed: 1}, counts)
		_, err = s.Report(t.Context(), report.Report{})
		require.ErrorIs(t, err, report.ErrInvalid)
		s.rows.fail = func(report.Report) error { return store.ErrBusy }
		_, err = s.Report(t.Context(), one)
		require.ErrorIs(t, err, store.ErrBusy)
		assert.Equal(t, map[string]float64{"consumed http": 1, "junk http": 1}, s.series("acks_total"))
		s.end()
		_, err = s.Report(t.Context(), one)
		require.ErrorIs(t, err, reports.ErrNotLeading)
	})
}

func TestTheTableOfReportsIsLookedThrough(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, groups := range [][]string{{"one"}, {"one", "two"}} {
			s := newStage(t, func(cfg *reports.Config) {
				cfg.OpenReader = nil
				cfg.Rules.Groups = map[string][]string{"orders": groups}
			})
			s.rows.oldest = func(*acks.UnreportedScan) (*acks.SentMessage, bool, error) { return nil, true, nil }
			s.start()
			later(62 * time.Second)
			s.end()
			if len(groups) == 1 {
				assert.Zero(t, s.rows.settled, "one group needs no table")
				continue
			}
			assert.Equal(t, 12, s.rows.settled)
			assert.InDelta(t, s.rows.settled, s.series("acks_total")["consumed sql"], 0)
		}
	})
}

// The age and whether the group has read past the message, for each pair; what is not known is left out.
func TestUnreportedMessagesAreWatched(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		age, complete, read := time.Hour, true, errors.New("no coordinator")
		marked := time.Unix(1_700_000_000, 0)
		s := newStage(t, func(cfg *reports.Config) {
			cfg.OpenReader = nil
			cfg.Rules.Groups = map[string][]string{"orders": {"points"}}
			cfg.Groups = readPast(func(group string, row *outbox.Row, moment time.Time) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				assert.Equal(t, "points", group)
				assert.Equal(t, "m", row.MsgID)
				assert.True(t, moment.After(marked.Add(time.Second)), "update_time has whole seconds only")
				return true, read
			})
		})
		s.rows.oldest = func(*acks.UnreportedScan) (*acks.SentMessage, bool, error) {
			mu.Lock()
			defer mu.Unlock()
			if age == 0 {
				return nil, complete, nil
			}
			return &acks.SentMessage{Message: store.Message{Row: outbox.Row{MsgID: "m"}, Age: age}, MarkedAt: marked}, complete, nil
		}
		s.start()
		expect := func(wantAge, wantRead map[string]float64) {
			t.Helper()
			later(20 * time.Second)
			assert.Equal(t, wantAge, s.series("oldest_unreported_seconds"))
			assert.Equal(t, wantRead, s.series("group_read_past_oldest"))
		}
		set := func(do func()) { mu.Lock(); defer mu.Unlock(); do() }
		pair := "points orders"
		expect(map[string]float64{pair: 3600}, map[string]float64{})
		set(func() { read = nil })
		expect(map[string]float64{pair: 3600}, map[string]float64{pair: 1})
		set(func() { age, complete = 0, false })
		expect(map[string]float64{pair: 3600}, map[string]float64{pair: 1})
		set(func() { complete = true })
		expect(map[string]float64{pair: 0}, map[string]float64{})
		s.end()
		assert.Empty(t, s.series("oldest_unreported_seconds"))
	})
}
