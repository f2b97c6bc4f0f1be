package harness

import (
	"database/sql"
	"fmt"
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

// WaitSettled waits until no row of the tables is pending or failed.
func WaitSettled(t testing.TB, limit time.Duration, db *sql.DB, tables ...string) {
	t.Helper()
	Eventually(t, limit, "every row settled", func() (bool, string) {
		n, err := workload.Open(t.Context(), db, tables...)
		if err != nil {
			return false, err.Error()
		}
		return n == 0, fmt.Sprintf("%d rows pending or failed", n)
	})
}
