package rewind

import (
	"fmt"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/internal/desk"
)

// Outcome is what would follow from a move of the checkpoint, or has.
type Outcome struct {
	Source     string         `json:"source"`
	Action     string         `json:"action"`
	Applied    bool           `json:"applied"`
	Old        *desk.Position `json:"old"`
	OldProblem string         `json:"old_problem,omitempty"`
	New        *desk.Position `json:"new"`
	Direction  string         `json:"direction"`
	// Binlog is what the server says about the new position.
	Binlog *desk.Binlog `json:"binlog,omitempty"`
	// Range is what lies between the old position and the new one.
	Range *Stretch `json:"range,omitempty"`
	// Rows counts the table's rows that are the sweeper's or will be.
	Rows *desk.Counts `json:"rows,omitempty"`
	// Deferred is how many pending rows were handed to the sweeper.
	Deferred int64       `json:"deferred"`
	Leader   desk.Leader `json:"leader"`
	Follows  []string    `json:"follows"`
}

// Stretch is a stretch of the binlog.
type Stretch struct {
	From  *desk.Position `json:"from"`
	Until *desk.Position `json:"until"`
	Bytes uint64         `json:"bytes"`
	// BytesRead is how much was read for these numbers; when Estimate is set the rest was extrapolated.
	BytesRead uint64 `json:"bytes_read"`
	Estimate  bool   `json:"estimate"`
	Rows      int64  `json:"rows"`
	Settled   int64  `json:"already_settled"`
	Open      int64  `json:"still_open"`
	Gone      int64  `json:"not_in_table"`
	// Missed can't be read with certainty, so they are the sweeper's; they are not among Rows.
	Missed int64 `json:"left_to_sweeper"`
}

// foretell says in words what will follow.
func (m *Move) foretell() {
	say := func(format string, args ...any) {
		m.outcome.Follows = append(m.outcome.Follows, fmt.Sprintf(format, args...))
	}
	switch {
	case m.to == nil && m.scope.Config.Checkpoint.Start == canal.StartEarliest:
		say("The position is forgotten, and checkpoint.start is earliest: the next start reads all the binlog that there is.")
	case m.to == nil:
		say("The position is forgotten: the next start begins at the binlog's end of then and hands every pending row to the sweeper, which sends them before anything newer of their topics.")
	case m.outcome.Binlog != nil && !m.outcome.Binlog.Usable:
		say("The server can't go on from the new position (%s): %s. The next start begins at the binlog's end of then and sweeps everything pending.",
			m.outcome.Binlog.Recovery, m.outcome.Binlog.Detail)
	case m.outcome.Direction == string(Same):
		say("The position stays where it is; only the history gets a line.")
	case m.outcome.Direction == string(Back):
		say("The stream reads again from the new position. Rows that are sent, consumed, dead or discarded are skipped; those still pending are sent.")
	case m.outcome.Direction == string(Forward):
		say("The stream never brings what lies before the new position. Rows pending there are handed to the sweeper now (next_retry_time), which sends them before anything newer of their topics.")
	default:
		say("The positions can't be compared: what is behind the new one is read (again), and every row pending now is handed to the sweeper.")
	}
	if r := m.outcome.Range; r != nil && r.Gone > 0 && m.to != nil && m.outcome.Direction != string(Forward) {
		say("Rows that are not in the table any more (archived or deleted) are sent again: their consumers see duplicates.")
	}
	if m.outcome.Leader.Led {
		say("A relay leads the source: with --force it is fenced off at its next save and begins again from the new position.")
	}
}
