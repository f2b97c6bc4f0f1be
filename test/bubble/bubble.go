// Package bubble runs tests under the fake clock of testing/synctest, also with the race detector.
//
// The runtime of Go 1.26 gives the timers of a bubble one context of the race detector, and uses it on two threads at
// once: on the one that moves the clock, and on one whose goroutine looks at another timer that is due at the same
// moment. That corrupts the detector's memory (ThreadSanitizer: CHECK failed; SIGSEGV;
// https://github.com/golang/go/issues/78156). With one processor there is no second thread. TestTimersOfOneMoment
// crashes within seconds without it.
package bubble

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"example.com/outbox-relay/test/race"
)

// Test runs f in a bubble, as synctest.Test does. It may be called concurrently.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if race.Enabled {
		processors.one()
		defer processors.back()
	}
	synctest.Test(t, f) //nolint:forbidigo // here it has one processor
}

// processors is the process' number of processors, of which there is one while a bubble is there.
var processors limit

// limit counts who needs it.
type limit struct {
	mu     sync.Mutex
	users  int
	before int
}

func (l *limit) one() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users++; l.users == 1 {
		l.before = runtime.GOMAXPROCS(1)
	}
}

func (l *limit) back() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users == 0 {
		runtime.GOMAXPROCS(l.before)
	}
}
