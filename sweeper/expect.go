package sweeper

import "time"

// looks are when, after somebody read of rows in the binlog, passes look for them. The binlog tells of a row before it can be
// read: a moment before, or seconds with semi-synchronous replication. After the last of them the rows are all found, or
// are not there.
func looks() []time.Duration {
	return []time.Duration{0, 250 * time.Millisecond, time.Second, readable}
}

// Expect asks for a pass at once, and for a few more after it: the stream has read of rows that it does not bring.
func (s *Sweeper) Expect() {
	s.mu.Lock()
	s.expected, s.step = time.Now(), 0
	s.mu.Unlock()
	poke(s.moved)
}

// nearest returns when the next pass is due, at the latest at end.
func (s *Sweeper) nearest(end time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.due.IsZero() && s.due.Before(end) {
		end = s.due
	}
	if steps := looks(); s.step < len(steps) {
		if at := s.expected.Add(steps[s.step]); at.Before(end) {
			end = at
		}
	}
	return end
}

// woken takes note that a pass begins for what was due at a time.
func (s *Sweeper) woken(at time.Time) {
	s.mu.Lock()
	if !s.due.After(at) {
		s.due = time.Time{}
	}
	first, steps := s.step, looks()
	for s.step < len(steps) && !s.expected.Add(steps[s.step]).After(at) {
		s.step++
	}
	taken := s.step
	s.mu.Unlock()
	if taken == first {
		return
	}
	s.kicked = true
	// Reading everything again is not free where a closed topic has many rows: once at first, and once more for rows that could
	// not be read then.
	if first == 0 || taken == len(steps)-1 {
		s.lookEverywhere()
	}
}
