//go:build bench && !unit

package stories

import (
	"testing"
	"time"

	"example.com/outbox-relay/test/race"
	"example.com/outbox-relay/test/rig"
)

// measured refuses the race detector, which slows everything down.
func measured(t *testing.T) {
	t.Helper()
	if race.Enabled {
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

// TestKafkaAwayFor5Minutes: a thousand rows a second meanwhile.
func TestKafkaAwayFor5Minutes(t *testing.T) {
	measured(t)
	outage{rate: 1000, away: 5 * time.Minute, inFlight: 20_000, catchUp: 10_000, memory: bounded}.run(t)
}

// TestMarksWaitFor30s: a thousand rows a second meanwhile.
func TestMarksWaitFor30s(t *testing.T) {
	measured(t)
	full := func(b blockage) blockage { b.rate, b.hold, b.strict = 1000, 30*time.Second, true; return b }
	for name, start := range both {
		t.Run(name, func(t *testing.T) {
			t.Run("TableLocked", func(t *testing.T) { full(blockage{begin: tableLock, tables: unlocked}).run(t, start(t)) })
			t.Run("RowsLocked", func(t *testing.T) { full(blockage{begin: rowLock}).run(t, start(t)) })
			t.Run("ReadOnly", func(t *testing.T) { full(blockage{begin: readOnly}).run(t, start(t, rig.Own())) })
		})
	}
}
