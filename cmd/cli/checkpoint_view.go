package cli

import (
	"fmt"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk/rewind"
)

// changeView is what would follow from a move of the checkpoint, or has.
type changeView struct {
	Source     string        `json:"source"`
	Action     string        `json:"action"`
	Applied    bool          `json:"applied"`
	Old        *positionView `json:"old"`
	OldProblem string        `json:"old_problem,omitempty"`
	New        *positionView `json:"new"`
	Direction  string        `json:"direction"`
	// Binlog is what the server says about the new position.
	Binlog *binlogView `json:"binlog,omitempty"`
	// Range is what lies between the old position and the new one.
	Range *rangeView `json:"range,omitempty"`
	// Rows counts the table's rows that are the sweeper's or will be.
	Rows *countsView `json:"rows,omitempty"`
	// Deferred is how many pending rows were handed to the sweeper.
	Deferred int64      `json:"deferred"`
	Leader   leaderView `json:"leader"`
	Follows  []string   `json:"follows"`
}

// rangeView is a stretch of the binlog.
type rangeView struct {
	From  *positionView `json:"from"`
	Until *positionView `json:"until"`
	Bytes uint64        `json:"bytes"`
	// BytesRead is how much was read for these numbers; when Estimate is set the rest was extrapolated.
	BytesRead uint64 `json:"bytes_read"`
	Estimate  bool   `json:"estimate"`
	Rows      int64  `json:"rows"`
	Settled   int64  `json:"already_settled"`
	Open      int64  `json:"still_open"`
	Gone      int64  `json:"not_in_table"`
	// Missed can\'t be read with certainty, so they are the sweeper\'s; they are not among Rows.
	Missed int64 `json:"left_to_sweeper"`
}

func (r *rangeView) summary() string {
	about := ""
	if r.Estimate {
		about = "about "
		if r.BytesRead == 0 {
			return "not counted: nothing could be read in time; give --measure more"
		}
	}
	text := fmt.Sprintf("%s%s in %s: %s already settled, %s still open, %s not in the table any more", about,
		render.Plural(r.Rows, "row"), render.Bytes(r.Bytes), render.Count(r.Settled, 0), render.Count(r.Open, 0), render.Count(r.Gone, 0))
	if r.Missed > 0 {
		text += fmt.Sprintf(", %s more that only a sweep can send", render.Count(r.Missed, 0))
	}
	if r.Estimate {
		text += fmt.Sprintf(" (estimate: %s were read)", render.Bytes(r.BytesRead))
	}
	return text
}

// Text writes it for a person who has to decide.
func (v changeView) Text(p *render.Page) {
	p.Field("source", "%s", v.Source)
	p.Field("action", "%s", v.Action)
	p.Field("old position", "%s", v.Old)
	p.Field("problem", "%s", v.OldProblem)
	p.Field("new position", "%s", v.New)
	if v.New != nil && v.New.GTID != "" {
		p.Field("new gtid set", "%s", v.New.GTID)
	}
	if b := v.Binlog; b != nil {
		p.Field("binlog exists", "%s", render.YesNo(b.FileExists))
		p.Field("to be read", "%s in %s more, up to %s", render.Bytes(b.BytesBehind), render.Plural(int64(b.FilesBehind), "file"), b.End)
	}
	if v.Range != nil {
		name := "read again"
		if v.Direction == string(rewind.Forward) {
			name = "passed over"
		}
		p.Field(name, "%s", v.Range.summary())
	}
	if v.Rows != nil {
		p.Field("in the table", "%s pending, %s failed", render.Count(v.Rows.Pending, v.Rows.Cap), render.Count(v.Rows.Failed, v.Rows.Cap))
	}
	v.Leader.text(p)
	if v.Applied {
		p.Field("done", "yes")
		p.Field("to the sweeper", "%s", render.Plural(v.Deferred, "pending row"))
	}
	p.Blank()
	for _, line := range v.Follows {
		p.Line("- %s", line)
	}
}

// foretell says in words what will follow.
func (c *change) foretell() {
	say := func(format string, args ...any) {
		c.view.Follows = append(c.view.Follows, fmt.Sprintf(format, args...))
	}
	switch {
	case c.to == nil && c.config.Checkpoint.Start == canal.StartEarliest:
		say("The position is forgotten, and checkpoint.start is earliest: the next start reads all the binlog that there is.")
	case c.to == nil:
		say("The position is forgotten: the next start begins at the binlog's end of then and hands every pending row to the sweeper, which sends them before anything newer of their topics.")
	case c.view.Binlog != nil && !c.view.Binlog.Usable:
		say("The server can't go on from the new position (%s): %s. The next start begins at the binlog's end of then and sweeps everything pending.",
			c.view.Binlog.Recovery, c.view.Binlog.Detail)
	case c.view.Direction == string(rewind.Same):
		say("The position stays where it is; only the history gets a line.")
	case c.view.Direction == string(rewind.Back):
		say("The stream reads again from the new position. Rows that are sent, consumed, dead or discarded are skipped; those still pending are sent.")
	case c.view.Direction == string(rewind.Forward):
		say("The stream never brings what lies before the new position. Rows pending there are handed to the sweeper now (next_retry_time), which sends them before anything newer of their topics.")
	default:
		say("The positions can't be compared: what is behind the new one is read (again), and every row pending now is handed to the sweeper.")
	}
	if r := c.view.Range; r != nil && r.Gone > 0 && c.to != nil && c.view.Direction != string(rewind.Forward) {
		say("Rows that are not in the table any more (archived or deleted) are sent again: their consumers see duplicates.")
	}
	if c.view.Leader.Led {
		say("A relay leads the source: with --force it is fenced off at its next save and begins again from the new position.")
	}
}
