package harness

import (
	"context"
	"database/sql"
	"math"
	"testing"
	"time"

	"example.com/outbox-relay/internal/demo/workload"
)

// poll is how often a bounded wait looks.
const poll = 50 * time.Millisecond

// Eventually polls until done returns true, and fails the test with the last detail when that takes too long.
func Eventually(t testing.TB, limit time.Duration, what string, done func() (ok bool, detail string)) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		ok, detail := done()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s (%s)", limit, what, detail)
		}
	}
}

// Dwindles polls until nothing is left, and reports whether that came true. It gives up when for the limit there was never
// less left than before: how fast it goes is the machine's business, that it goes on is the relay's.
func Dwindles(limit time.Duration, left func() int) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for least := math.MaxInt; ; {
		now := left()
		if now <= 0 {
			return true
		}
		if now < least {
			least = now
			deadline.Reset(limit)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}
}

// WaitSettled waits until no row of the tables is pending or failed, and fails the test when for the limit none was settled.
func WaitSettled(t testing.TB, limit time.Duration, db *sql.DB, tables ...string) {
	t.Helper()
	var open int
	var err error
	if !Dwindles(limit, func() int { open, err = unsettled(t.Context(), db, tables); return open }) {
		t.Fatalf("%d rows are pending or failed, for %s no fewer (%v)", open, limit, err)
	}
}

// unsettled counts the rows that are pending or failed. When they can't be counted there are as many as there may be.
func unsettled(ctx context.Context, db *sql.DB, tables []string) (int, error) {
	n, err := workload.Open(ctx, db, tables...)
	if err != nil {
		return math.MaxInt, err
	}
	return n, nil
}
