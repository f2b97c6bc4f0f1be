//go:build bench && !unit

package bounds

import (
	"testing"
	"time"

	"example.com/outbox-relay/test/harness"
)

// measured refuses the race detector, which slows everything down.
func measured(t *testing.T) {
	t.Helper()
	if harness.Race {
		t.Fatal("measure without -race")
	}
}

// TestMillionRowTransaction: a million rows of 400 bytes in one transaction, then 300 of 60 KB, among small ones. It takes
// about three minutes.
func TestMillionRowTransaction(t *testing.T) {
	measured(t)
	giant{rows: 1_000_000, bytes: 400, fat: 300, fatSize: 60_000, limit: 4 * time.Minute}.run(t)
}

// TestTwoMillionRowsOfAnotherTable: one message in a transaction of two million rows that are none of the relay's.
func TestTwoMillionRowsOfAnotherTable(t *testing.T) {
	measured(t)
	foreign(t, 2_000_000, 3*time.Minute)
}
