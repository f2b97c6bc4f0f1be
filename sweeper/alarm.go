package sweeper

import (
	"context"
	"sync"
	"time"
)

// Alarm knows when the next pass is to begin. Whoever learns of work sets it; one sweeper sleeps by it. Kick, WakeIn
// and Expect may be called concurrently, and before there is a sweeper.
type Alarm struct {
	kick  chan struct{} // size 1: one waiting kick is enough
	moved chan struct{} // size 1, likewise

	mu  sync.Mutex
	due time.Time // the nearest time that somebody asked for, zero when nobody did
	// expected is when somebody read of rows in the binlog last, and step how many of the looks after it were taken.
	expected time.Time
	step     int
}

// NewAlarm returns an alarm that nobody has set.
func NewAlarm() *Alarm {
	return &Alarm{kick: make(chan struct{}, 1), moved: make(chan struct{}, 1), step: len(looks())}
}

// looks are when, after somebody read of rows in the binlog, passes look for them. The binlog tells of a row before
// it can be read: a moment before, or seconds with semi-synchronous replication. After the last of them the rows are
// all found, or are not there.
func looks() []time.Duration {
	return []time.Duration{0, 250 * time.Millisecond, time.Second, readable}
}

// Kick asks for a pass at once.
func (a *Alarm) Kick() { poke(a.kick) }

// WakeIn asks for a pass when d has gone by: a row becomes due then.
func (a *Alarm) WakeIn(d time.Duration) { a.wakeAt(time.Now().Add(d)) }

func (a *Alarm) wakeAt(at time.Time) {
	a.mu.Lock()
	sooner := a.due.IsZero() || at.Before(a.due)
	if sooner {
		a.due = at
	}
	a.mu.Unlock()
	if sooner {
		poke(a.moved)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Expect asks for a pass at once, and for a few more after it: the stream has read of rows that it does not bring.
func (a *Alarm) Expect() {
	a.mu.Lock()
	a.expected, a.step = time.Now(), 0
	a.mu.Unlock()
	poke(a.moved)
}

// nearest returns when the next pass is due, at the latest at end.
func (a *Alarm) nearest(end time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.due.IsZero() && a.due.Before(end) {
		end = a.due
	}
	if steps := looks(); a.step < len(steps) {
		if at := a.expected.Add(steps[a.step]); at.Before(end) {
			end = at
		}
	}
	return end
}

// soonest keeps a run of due rows that can't be sent from turning the loop hot.
const soonest = 100 * time.Millisecond

// sleep waits for d, a kick, or the nearest time that somebody asked for. It reports whether somebody knows of rows,
// however fresh, and whether everything is to be read again because of that.
func (a *Alarm) sleep(ctx context.Context, d time.Duration) (kicked, everywhere bool) {
	end := time.Now().Add(d)
	earliest := time.Now().Add(soonest)
	for {
		at := a.nearest(end)
		if at.Before(earliest) {
			at = earliest
		}
		left := time.Until(at)
		if left <= 0 {
			return a.woken(at)
		}
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, false
		case <-a.kick:
			timer.Stop()
			return true, true
		case <-a.moved:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// woken takes note that a pass begins for what was due at a time. Reading everything again is not free where a closed
// topic has many rows: once at first, and once more for rows that could not be read then.
func (a *Alarm) woken(at time.Time) (kicked, everywhere bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.due.After(at) {
		a.due = time.Time{}
	}
	first, steps := a.step, looks()
	for a.step < len(steps) && !a.expected.Add(steps[a.step]).After(at) {
		a.step++
	}
	return a.step > first, a.step > first && (first == 0 || a.step == len(steps)-1)
}
