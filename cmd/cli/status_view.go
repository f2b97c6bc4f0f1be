package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/console"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/relay"
)

// statusView shows a running relay on one screen.
type statusView struct{ desk.Running }

// Text writes the screen.
func (v statusView) Text(p *render.Page) {
	p.Field("relay", "%s, up %s", v.Version, seconds(v.UptimeSeconds))
	p.Field("ready", "%s", human.YesNo(v.Ready))
	for _, s := range v.Sources {
		p.Blank()
		sourceText(p, s)
	}
}

func sourceText(p *render.Page, s desk.SourceState) {
	st := s.State
	p.Field("source", "%s", s.Name)
	p.Field("role", "%s", st.Role)
	p.Field("ready", "%s", human.YesNo(s.Ready))
	p.Field("start", "%s", st.Recovery)
	p.Field("detail", "%s", st.Detail)
	if st.Read != "" {
		p.Field("connected", "%s", human.YesNo(st.Connected))
		p.Field("read", "%s", st.Read)
		p.Field("settled", "%s", st.Safe)
		p.Field("lag", "%s", seconds(st.LagSeconds))
	}
	if s.CheckpointAgeSeconds > 0 {
		p.Field("checkpoint", "saved %s ago", seconds(s.CheckpointAgeSeconds))
	}
	if st.Role != "standby" && st.Role != "" {
		p.Field("in flight", "%s, %s; %d unmarked; %d open transactions",
			human.Plural(int64(st.InFlight), "message"), human.Bytes(uint64(max(st.InFlightBytes, 0))), st.Unmarked, st.Transactions)
	}
	if r := st.Reconciliation; r != nil {
		p.Field("agreement", "%s", agreement(r))
	}
	if s.LastSweepAgeSeconds > 0 {
		p.Field("last sweep", "%s ago", seconds(s.LastSweepAgeSeconds))
	}
	for _, one := range st.Recoveries {
		p.Field("recovery", "%s", one)
	}
	for _, check := range s.Checks {
		if !check.OK {
			p.Field("not well", "%s: %s%s", check.Name, check.Error, degraded(check))
		}
	}
	for _, text := range st.Errors {
		p.Field("error", "%s", text)
	}
	if len(st.Topics) > 0 {
		p.Blank()
		p.Header("TOPIC", "STATE", "HELD", "REASON")
		for _, t := range st.Topics {
			p.Row(t.Name, t.State, human.Count(int64(t.Held), 0), t.Reason)
		}
	}
	heldKeysText(p, s)
}

// heldKeysText lists which dead letters hold up the later messages of their key, and what to do.
func heldKeysText(p *render.Page, s desk.SourceState) {
	held := s.State.HeldKeys
	if len(held) == 0 {
		return
	}
	p.Blank()
	p.Header("KEY HELD BY DEAD LETTER", "MSG_ID", "TOPIC", "TABLE")
	for _, k := range held {
		p.Row(strconv.FormatUint(k.ID, 10), k.MsgID, k.Topic, k.Table)
	}
	if more := s.State.HeldTotal - len(held); more > 0 {
		p.Line("and %d more", more)
	}
	p.Line("The later messages of these keys wait: outbox-relay messages retry ID --yes, or outbox-relay messages discard ID --yes, lets them go on.")
}

// agreement is the verdict whether the stream and the table agree, with the reasons that are known.
func agreement(r *relay.Reconciliation) string {
	text := fmt.Sprintf("stream delivered %s, sweeper recovered %s, unexplained %s",
		human.Count(r.Delivered, 0), human.Count(r.Recovered, 0), human.Count(r.Unexplained, 0))
	var known []string
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		if n := r.Reasons[reason]; reason != words.MissedUnexplained && n > 0 {
			known = append(known, reason+" "+human.Count(n, 0))
		}
	}
	if len(known) > 0 {
		text += " (recovered: " + strings.Join(known, ", ") + ")"
	}
	return text
}

func degraded(check console.CheckStatus) string {
	if check.Degraded {
		return " (the relay still does its work)"
	}
	return ""
}

// outsideView shows what can be known of the sources while no relay answers.
type outsideView struct{ desk.Outside }

// Text writes the screen.
func (v outsideView) Text(p *render.Page) {
	for i, s := range v.Sources {
		if i > 0 {
			p.Blank()
		}
		p.Field("source", "%s", s.Name)
		leaderText(p, s.Leader)
		if s.Checkpoint != nil {
			checkpointText(p, s.Checkpoint)
		}
		if s.Rows != nil {
			countsText(p, s.Rows)
		}
		for _, problem := range s.Problems {
			p.Field("problem", "%s", problem)
		}
	}
}

func countsText(p *render.Page, v *desk.Counts) {
	p.Field("rows", "%s pending, %s failed, %s dead", human.Count(v.Pending, v.Cap), human.Count(v.Failed, v.Cap), human.Count(v.Dead, v.Cap))
	if v.OldestPendingSeconds > 0 {
		p.Field("oldest pending", "%s", seconds(v.OldestPendingSeconds))
	}
}

func leaderText(p *render.Page, v desk.Leader) { p.Field("leader", "%s", leaderName(v)) }

// leaderName says who leads.
func leaderName(v desk.Leader) string {
	switch {
	case !v.Known:
		return "unknown: " + v.Problem
	case v.Led:
		return v.Holder
	case v.Lock == "none":
		return "none on this machine (leader.lock is none: others can't be seen)"
	}
	return "none"
}
