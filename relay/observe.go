package relay

import (
	"math"
	"time"
)

// observe lets the metrics read what the running session knows.
func (r *Relay) observe() {
	m := r.deps.Metrics
	m.InFlight.SetFunc(r.read(func(s *session) float64 { rows, _ := s.flow.inFlight.used(); return float64(rows) }))
	m.InFlightBytes.SetFunc(r.read(func(s *session) float64 { _, bytes := s.flow.inFlight.used(); return float64(bytes) }))
	m.Unmarked.SetFunc(r.read(func(s *session) float64 { return float64(s.flow.marker.depth()) }))
	m.ClosedTopics.SetFunc(r.read(func(s *session) float64 { return float64(len(s.flow.lines.Closed())) }))
	m.Connected.SetFunc(r.stream(func(s *session) float64 {
		if s.reader.State().Connected {
			return 1
		}
		return 0
	}))
	m.LagSeconds.SetFunc(r.stream(func(s *session) float64 { return s.reader.State().Behind.Seconds() }))
	m.CheckpointAge.SetFunc(r.stream(func(s *session) float64 {
		_, saved, _ := s.saver.state()
		if saved.IsZero() {
			return math.NaN()
		}
		return time.Since(saved).Seconds()
	}))
}

// read makes a gauge's function of one that asks the session; without a session there is nothing on its way.
func (r *Relay) read(of func(*session) float64) func() float64 {
	return func() float64 {
		r.mu.Lock()
		s := r.session
		r.mu.Unlock()
		if s == nil {
			return 0
		}
		return of(s)
	}
}

// stream is read for what only a session that streams knows.
func (r *Relay) stream(of func(*session) float64) func() float64 {
	return r.read(func(s *session) float64 {
		if s.saver == nil {
			return math.NaN()
		}
		return of(s)
	})
}
