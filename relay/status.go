package relay

import (
	"errors"
	"fmt"
	"math"
	"time"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/store"
)

// Role is what the process does for the source.
type Role string

// The roles.
const (
	RoleStandby  Role = "standby"  // another relay leads
	RoleStarting Role = "starting" // it has the lock and reads where to start
	RoleStream   Role = "leader"   // it streams and sweeps
	RoleSweep    Role = "sweeping" // it leads, and sweeps alone
)

// Status is the relay's state on one screen.
type Status struct {
	Source   string `json:"source"`
	Role     Role   `json:"role"`
	Recovery string `json:"recovery,omitempty"` // how the stream started
	Detail   string `json:"detail,omitempty"`
	// Recoveries are the last of each kind since the process began, the newest first.
	Recoveries []Recovery `json:"recoveries,omitempty"`

	StreamStatus
	FlightStatus

	Reconciliation *Reconciliation `json:"reconciliation,omitempty"` // once it has streamed

	WaitingStatus

	LastSweep time.Time `json:"last_sweep,omitzero"`
	Errors    []string  `json:"errors,omitempty"`
}

// StreamStatus is how far the stream is; zero where only the table is swept.
type StreamStatus struct {
	Connected    bool      `json:"connected"`
	Read         string    `json:"read,omitempty"` // binlog place read up to
	Safe         string    `json:"safe,omitempty"` // binlog place settled up to
	GTID         string    `json:"gtid,omitempty"`
	LagSeconds   float64   `json:"lag_seconds"`
	Saved        time.Time `json:"checkpoint_saved,omitzero"`
	Transactions int       `json:"open_transactions"`
}

// FlightStatus is what is on its way.
type FlightStatus struct {
	InFlight      int   `json:"in_flight_messages"`
	InFlightBytes int64 `json:"in_flight_bytes"`
	Unmarked      int   `json:"unmarked_messages"`
}

// WaitingStatus is what waits in lines.
type WaitingStatus struct {
	Topics []TopicStatus `json:"closed_topics,omitempty"`
	// HeldKeys are dead letters behind which a key waits, the first of HeldTotal.
	HeldKeys  []HeldKey `json:"held_keys,omitempty"`
	HeldTotal int       `json:"held_keys_total,omitempty"`
}

// TopicStatus is a topic that is not open.
type TopicStatus struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	Held   int    `json:"held,omitempty"`
}

// Check is one line of readiness.
type Check struct {
	Name   string
	Err    error // nil: fine
	Detail string
	// Degraded tells that the relay still does its work although Err is set.
	Degraded bool
}

// Name returns the source's name.
func (r *Relay) Name() string { return r.cfg.Source }

// Live returns an error when the relay's own loops do not turn any more, whatever its dependencies do.
func (r *Relay) Live() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since := time.Since(r.ticked); since > time.Minute {
		return fmt.Errorf("the loops of source %s have not turned for %s", r.cfg.Source, since.Round(time.Second))
	}
	return nil
}

// Status returns a picture of now.
func (r *Relay) Status() Status {
	r.mu.Lock()
	st := Status{Source: r.cfg.Source, Role: r.role, Recovery: r.start.Recovery, Detail: r.start.Detail, Recoveries: r.recoveries.all()}
	s, lastErr := r.session, r.lastErr
	if r.streamed {
		st.Reconciliation = reconciled(r.reckoning)
	}
	r.mu.Unlock()
	if lastErr != nil {
		st.Errors = append(st.Errors, lastErr.Error())
	}
	if s == nil {
		return st
	}
	st.InFlight, st.InFlightBytes = s.flow.inFlight.used()
	st.Unmarked = s.flow.marker.depth()
	st.LastSweep = s.sweeper.LastPass()
	st.Topics = s.flow.lines.status()
	st.HeldKeys, st.HeldTotal = s.flow.lines.heldKeys()
	if err := s.flow.marker.err(); err != nil {
		st.Errors = append(st.Errors, "mark: "+err.Error())
	}
	if err := s.flow.silent(); err != nil {
		st.Errors = append(st.Errors, "kafka: "+err.Error())
	}
	s.streamStatus(&st)
	return st
}

func (s *session) streamStatus(st *Status) {
	if s.saver == nil {
		return
	}
	state := s.reader.State()
	st.Connected = state.Connected
	st.Read = state.Read.String()
	st.LagSeconds = state.Behind.Seconds()
	pos, saved, err := s.saver.state()
	st.Safe, st.GTID, st.Saved = pos.String(), pos.GTID, saved
	st.Transactions = s.tracker.Open()
	if err != nil {
		st.Errors = append(st.Errors, "checkpoint: "+err.Error())
	}
	if state.Waiting != "" {
		st.Errors = append(st.Errors, "binlog waits: "+state.Waiting)
	}
	if state.LastError != "" {
		st.Errors = append(st.Errors, "binlog: "+state.LastError)
	}
}

// Ready returns what is needed for the relay to do its work, a line each.
func (r *Relay) Ready() []Check {
	r.mu.Lock()
	role, s, lastErr, primaryErr := r.role, r.session, r.lastErr, r.primaryErr
	r.mu.Unlock()
	checks := []Check{{Name: "role", Detail: string(role)}}
	switch {
	case role == RoleStarting && s == nil:
		checks[0].Err = errors.Join(errors.New("starting"), lastErr)
		return checks
	case s == nil && primaryErr != nil:
		// Without the primary nobody leads, however well this process feels.
		checks[0].Err = fmt.Errorf("standing by, and %w", primaryErr)
		return checks
	case s == nil:
		return checks
	}
	// A database that can't be written to is waited for. A table that is gone needs somebody.
	marking := s.flow.marker.err()
	checks = append(checks, Check{Name: "mark", Err: marking, Degraded: !errors.Is(marking, store.ErrGone)},
		Check{Name: "kafka", Err: s.flow.silent(), Degraded: true})
	if s.saver == nil {
		return checks
	}
	return append(append(checks, s.streamChecks()...), r.recoveries.check())
}

// quietTooLong is when a connection that says nothing, not even a heartbeat, counts as not ready.
const quietTooLong = 30 * time.Second

func (s *session) streamChecks() []Check {
	state := s.reader.State()
	binlog := Check{Name: "binlog", Detail: state.Read.String()}
	switch {
	case state.Waiting != "":
		binlog.Err = errors.New("waits: " + state.Waiting)
	case !state.Connected:
		binlog.Err = errors.New("not connected: " + state.LastError)
	case time.Since(state.LastEvent) > quietTooLong:
		binlog.Err = fmt.Errorf("nothing was read for %s", time.Since(state.LastEvent).Round(time.Second))
	}
	pos, _, err := s.saver.state()
	return []Check{binlog, {Name: "checkpoint", Detail: pos.String(), Err: err, Degraded: true}}
}

func (r *Relay) setRole(role Role) {
	r.mu.Lock()
	r.role = role
	r.mu.Unlock()
	r.deps.Metrics.Leader.SetBool(role != RoleStandby)
}

func (r *Relay) begin(s *session) {
	role := RoleStream
	if s.saver == nil {
		role = RoleSweep
	}
	r.mu.Lock()
	r.session = s
	r.lastErr = nil
	r.mu.Unlock()
	r.setRole(role)
}

func (r *Relay) end(*session) {
	r.mu.Lock()
	r.session = nil
	r.role = RoleStarting
	r.mu.Unlock()
}

func (r *Relay) recovered(start canal.Start) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = start
}

func (r *Relay) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastErr = err
}

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
