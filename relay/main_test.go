package relay

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs one test after the other unless told otherwise: with the race detector the runtime of Go 1.26 crashes now and then
// (ThreadSanitizer: CHECK failed, slot_locked) when timers of two synctest bubbles start goroutines at the same time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "1"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
