package desk

import (
	"context"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/console"
	"example.com/outbox-relay/store"
)

// Leader says who leads a source.
type Leader struct {
	Lock string `json:"lock"`
	// Known is false when nobody could be asked; Problem says why.
	Known   bool   `json:"known"`
	Led     bool   `json:"led"`
	Holder  string `json:"holder,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Leader asks whoever keeps the source's lock. Without a lock only a relay on this machine can say, by its
// console. rows is nil where the primary can't be asked.
func (s *Scope) Leader(ctx context.Context, rows *store.Store, checkpoints *checkpoint.Store) Leader {
	v := Leader{Lock: s.Config.Leader.Lock}
	var err error
	switch {
	case v.Lock == "redis":
		v.Holder, v.Led, err = checkpoints.LeaseHolder(ctx, s.Source.Name)
	case v.Lock == "mysql" && rows != nil:
		v.Led, v.Holder, err = rows.LockHolder(ctx, s.Source.Name)
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
func (s *Scope) consoleLeader(ctx context.Context) (holder string, led bool, err error) {
	status, err := AskRelay(ctx, console.NewClient(ConsoleOf(s.Config)))
	if err != nil {
		return "", false, err
	}
	for _, one := range status.Sources {
		if one.Name == s.Source.Name && one.State.Role != "standby" {
			return "the relay that answers at console.listen", true, nil
		}
	}
	return "", false, nil
}
