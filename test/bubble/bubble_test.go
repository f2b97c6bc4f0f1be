package bubble_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/test/bubble"
	"example.com/outbox-relay/test/race"
)

// TestTimersOfOneMoment has many timers due at each moment, and goroutines that look at them while others fire.
func TestTimersOfOneMoment(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	for range 200 {
		bubble.Test(t, func(t *testing.T) {
			if race.Enabled {
				assert.Equal(t, 1, runtime.GOMAXPROCS(0))
			}
			var all sync.WaitGroup
			for range 50 {
				all.Go(lookAtTimers)
			}
			all.Wait()
		})
	}
	assert.Equal(t, before, runtime.GOMAXPROCS(0))
}

func lookAtTimers() {
	for range 20 {
		a, b := time.NewTimer(time.Millisecond), time.NewTimer(time.Millisecond)
		done := make(chan struct{})
		time.AfterFunc(time.Millisecond, func() { close(done) })
		select {
		case <-a.C:
		case <-b.C:
		}
		select {
		case <-b.C:
		default:
		}
		<-done
	}
}
