package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/console"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/relay"
)

// statusView is a running relay on one screen.
type statusView struct {
	Running       bool          `json:"running"`
	Version       string        `json:"version"`
	Started       time.Time     `json:"started"`
	UptimeSeconds float64       `json:"uptime_seconds"`
	Ready         bool          `json:"ready"`
	Sources       []sourceState `json:"sources"`
}

// Text writes the screen.
func (v statusView) Text(p *render.Page) {
	p.Field("relay", "%s, up %s", v.Version, seconds(v.UptimeSeconds))
	p.Field("ready", "%s", render.YesNo(v.Ready))
	for _, s := range v.Sources {
		p.Blank()
		s.text(p)
	}
}

func (s sourceState) text(p *render.Page) {
	st := s.State
	p.Field("source", "%s", s.Name)
	p.Field("role", "%s", st.Role)
	p.Field("ready", "%s", render.YesNo(s.Ready))
	p.Field("start", "%s", st.Recovery)
	p.Field("detail", "%s", st.Detail)
	if st.Read != "" {
		p.Field("connected", "%s", render.YesNo(st.Connected))
		p.Field("read", "%s", st.Read)
		p.Field("settled", "%s", st.Safe)
		p.Field("lag", "%s", seconds(st.LagSeconds))
	}
	if s.CheckpointAgeSeconds > 0 {
		p.Field("checkpoint", "saved %s ago", seconds(s.CheckpointAgeSeconds))
	}
	if st.Role != "standby" && st.Role != "" {
		p.Field("in flight", "%s, %s; %d unmarked; %d open transactions",
			render.Plural(int64(st.InFlight), "message"), render.Bytes(uint64(max(st.InFlightBytes, 0))), st.Unmarked, st.Transactions)
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
			p.Row(t.Name, t.State, render.Count(int64(t.Held), 0), t.Reason)
		}
	}
	s.heldKeys(p)
}

// heldKeys tells which dead letters hold up the later messages of their key, and what to do.
func (s sourceState) heldKeys(p *render.Page) {
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
		render.Count(r.Delivered, 0), render.Count(r.Recovered, 0), render.Count(r.Unexplained, 0))
	var known []string
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		if n := r.Reasons[reason]; reason != words.MissedUnexplained && n > 0 {
			known = append(known, reason+" "+render.Count(n, 0))
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
