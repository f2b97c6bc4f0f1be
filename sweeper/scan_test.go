package sweeper_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/sweeper"
	"example.com/outbox-relay/test/bubble"
)

// scanTable notes from where general passes read.
type scanTable struct {
	*table
	mu   sync.Mutex
	from []string
}

func (s *scanTable) Candidates(ctx context.Context, q store.Query) ([]outbox.Row, error) {
	if q.Only == "" {
		s.mu.Lock()
		s.from = append(s.from, q.DueFrom)
		s.mu.Unlock()
	}
	return s.table.Candidates(ctx, q)
}

// last returns from where the last pass read, "" when it read everything.
func (s *scanTable) last(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.from)
	return s.from[len(s.from)-1]
}

// scanBench is a bench with a closed topic that has a row, beside which nothing is due.
func scanBench(t *testing.T) (*bench, *scanTable) {
	t.Helper()
	b := newBench(t)
	rows := &scanTable{table: b.table}
	route, err := router.New(router.Config{Source: "test"})
	require.NoError(t, err)
	cfg := sweeper.Config{Interval: interval, Batch: 3, Lease: 30 * time.Second, Retry: retry.Policy{Backoff: []time.Duration{time.Hour}, MaxRetries: 2}}
	p := b.parts(route)
	p.Tables, p.Reckoning = sweeper.TablesOf(rows), nil
	b.Sweeper = sweeper.New(cfg, p)
	b.broker.refuse = refuse(errRefused, "m1")
	b.gate.states["closed"] = "closed"
	b.table.put("closed", outbox.Failed, 1)
	return b, rows
}

func TestScanGoesOnWhereNothingElseWasDue(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b, rows := scanBench(t)
		first := time.Now().Format(time.DateTime)
		b.pass(t)
		require.Empty(t, rows.last(t))
		wait(t, time.Second)
		b.pass(t)
		require.Equal(t, first, rows.last(t))
	})
}

func TestScanReadsEverythingAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *bench){
		"AfterAWhile":              func(t *testing.T, _ *bench) { t.Helper(); wait(t, 2*time.Minute+time.Second) },
		"WhenAnotherTopicIsClosed": func(_ *testing.T, b *bench) { b.gate.Close("other", "", 0) },
		"WhenATopicIsOpenAgain":    func(_ *testing.T, b *bench) { b.gate.set("closed", "open", "open") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b, rows := scanBench(t)
				b.pass(t)
				b.pass(t)
				require.NotEmpty(t, rows.last(t))
				change(t, b)
				b.pass(t)
				require.Empty(t, rows.last(t))
			})
		})
	}
}

// Somebody who kicks may have put a row anywhere.
func TestScanReadsEverythingAfterAKick(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b, rows := scanBench(t)
		b.start(t)
		wait(t, interval)
		require.NotEmpty(t, rows.last(t))
		b.Kick()
		synctest.Wait()
		require.Empty(t, rows.last(t))
	})
}

// A row that is due is read again until it is sent: the scan does not go past it.
func TestScanStaysWhileSomethingIsDue(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b, rows := scanBench(t)
		b.table.put("orders", outbox.Pending, 2)
		b.stream.set(sweeper.ErrBehind)
		for range 2 {
			_, err := b.Pass(t.Context())
			require.ErrorIs(t, err, sweeper.ErrBehind)
			wait(t, time.Second)
		}
		b.stream.set(nil)
		b.pass(t)
		require.Empty(t, rows.last(t))
		require.Contains(t, b.broker.published(), "~m2")
	})
}
