package cli

import (
	"fmt"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk/rewind"
	"example.com/outbox-relay/internal/human"
)

// changeView shows what would follow from a move of the checkpoint, or has.
type changeView struct{ rewind.Outcome }

// summary says how many rows lie in a stretch, and how they stand.
func summary(r *rewind.Stretch) string {
	about := ""
	if r.Estimate {
		about = "about "
		if r.BytesRead == 0 {
			return "not counted: nothing could be read in time; give --measure more"
		}
	}
	text := fmt.Sprintf("%s%s in %s: %s already settled, %s still open, %s not in the table any more", about,
		human.Plural(r.Rows, "row"), human.Bytes(r.Bytes), human.Count(r.Settled, 0), human.Count(r.Open, 0), human.Count(r.Gone, 0))
	if r.Missed > 0 {
		text += fmt.Sprintf(", %s more that only a sweep can send", human.Count(r.Missed, 0))
	}
	if r.Estimate {
		text += fmt.Sprintf(" (estimate: %s were read)", human.Bytes(r.BytesRead))
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
		p.Field("binlog exists", "%s", human.YesNo(b.FileExists))
		p.Field("to be read", "%s in %s more, up to %s", human.Bytes(b.BytesBehind), human.Plural(int64(b.FilesBehind), "file"), b.End)
	}
	if v.Range != nil {
		name := "read again"
		if v.Direction == string(rewind.Forward) {
			name = "passed over"
		}
		p.Field(name, "%s", summary(v.Range))
	}
	if v.Rows != nil {
		p.Field("in the table", "%s pending, %s failed", human.Count(v.Rows.Pending, v.Rows.Cap), human.Count(v.Rows.Failed, v.Rows.Cap))
	}
	leaderText(p, v.Leader)
	if v.Applied {
		p.Field("done", "yes")
		p.Field("to the sweeper", "%s", human.Plural(v.Deferred, "pending row"))
	}
	p.Blank()
	for _, line := range v.Follows {
		p.Line("- %s", line)
	}
}
