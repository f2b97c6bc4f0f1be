package canal

import (
	"maps"
	"sync"
	"time"

	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/canal/position"
)

// State is how the stream is doing, for health checks and the status command.
type State struct {
	Connected bool
	// Since is when Connected last changed.
	Since time.Time
	// Reconnects counts the connections that were replaced, by reason.
	Reconnects map[string]int
	// LastEvent is when the last event came, heartbeats included.
	LastEvent time.Time
	// CaughtUp: the server had nothing more to send when the last event came.
	CaughtUp bool
	// Behind is how old the transaction read last was when it was read, zero when caught up.
	Behind time.Duration
	// Read is the end of the last transaction that Next returned.
	Read position.End
	// Waiting is what the reader waits for the server to tell before it can go on, "" when it does not.
	Waiting string
	// LastError is what ended the last connection or the last attempt, "" while connected.
	LastError string
}

// stateKeeper is the State that Next writes and others read.
type stateKeeper struct {
	mu    sync.Mutex
	state State
}

// get returns a copy.
func (k *stateKeeper) get() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.state
	s.Reconnects = maps.Clone(s.Reconnects)
	return s
}

func (k *stateKeeper) set(change func(s *State)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.state)
}

func (k *stateKeeper) connected(now time.Time) {
	k.set(func(s *State) {
		s.Connected, s.Since, s.LastEvent, s.LastError = true, now, now, ""
	})
}

func (k *stateKeeper) disconnected(now time.Time, reason string, err error) {
	k.set(func(s *State) {
		if s.Connected {
			s.Connected, s.Since = false, now
		}
		s.CaughtUp = false
		s.LastError = plain.Text(err)
		if s.Reconnects == nil {
			s.Reconnects = make(map[string]int)
		}
		s.Reconnects[reason]++
	})
}

// Observer gets what the reader can't return. Its methods must not block; they are called from Next's goroutine.
type Observer interface {
	// Reconnect: the connection was lost for the reason, one of words.Reconnects(), and is being replaced.
	Reconnect(reason string)
}

// NopObserver ignores everything.
type NopObserver struct{}

// Reconnect does nothing.
func (NopObserver) Reconnect(string) {}
