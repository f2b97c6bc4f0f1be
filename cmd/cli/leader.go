package cli

import (
	"context"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/store"
)

// leaderView tells who leads a source.
type leaderView struct {
	Lock string `json:"lock"`
	// Known is false when nobody could be asked; Problem says why.
	Known   bool   `json:"known"`
	Led     bool   `json:"led"`
	Holder  string `json:"holder,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// leader asks whoever keeps the source's lock. Without a lock only a relay on this machine can tell, by its console.
func (s *scope) leader(ctx context.Context, rows *store.Store, checkpoints *checkpoint.Store) leaderView {
	v := leaderView{Lock: s.config.Leader.Lock}
	var err error
	switch {
	case v.Lock == "redis":
		v.Holder, v.Led, err = checkpoints.LeaseHolder(ctx, s.source.Name)
	case v.Lock == "mysql" && rows != nil:
		v.Led, v.Holder, err = rows.LockHolder(ctx, s.source.Name)
	case v.Lock == "mysql":
		v.Problem = "the primary that keeps the lock can't be asked"
		return v
	default:
		v.Holder, v.Led, err = s.consoleLeader(ctx)
	}
	if err != nil {
		v.Problem = err.Error()
		return v
	}
	v.Known = true
	return v
}

// consoleLeader asks the relay on this machine.
func (s *scope) consoleLeader(ctx context.Context) (holder string, led bool, err error) {
	client, err := s.consoleClient("")
	if err != nil {
		return "", false, err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return "", false, err
	}
	for _, one := range decodeSources(status) {
		if one.Name == s.source.Name && one.State.Role != "standby" {
			return "the relay that answers at console.listen", true, nil
		}
	}
	return "", false, nil
}

func (v leaderView) text(p *render.Page) { p.Field("leader", "%s", v.String()) }

// String says who leads.
func (v leaderView) String() string {
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
