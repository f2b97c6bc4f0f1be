package messages

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/archive/history"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/store"
)

// ResendRequest names archived messages.
type ResendRequest struct {
	// Names are ids or msg_ids; MsgIDs are msg_ids even where they look like numbers.
	Names, MsgIDs []string
	// Table narrows it to one of the source's tables, unless it is "".
	Table string
	// Who asks for it and why is kept by the log and the row.
	Who   checkpoint.Who
	Apply bool
}

// Resent is what resend would do, or has done.
type Resent struct {
	Applied  bool         `json:"applied"`
	Count    int          `json:"messages"`
	Messages []ResentLine `json:"lines"`
}

// ResentLine is an archived message that was named.
type ResentLine struct {
	Line
	History    string `json:"history"`
	ArchivedAt string `json:"archived_at"`
	// Problem is why the message stays in the history.
	Problem string `json:"problem,omitempty"`
}

// Stay counts the messages that stay in the history.
func (v *Resent) Stay() int {
	n := 0
	for i := range v.Messages {
		if v.Messages[i].Problem != "" {
			n++
		}
	}
	return n
}

// Resend brings archived messages back into their table or, unless Apply is set, says which it would bring. That one can't
// come back is a result. With an error the result is what was done before it, nil when that is nothing.
func Resend(ctx context.Context, s *desk.Scope, rows *store.Store, r ResendRequest) (*Resent, error) {
	histories, err := wire.Histories(s.Config, rows, s.Log)
	if err != nil {
		return nil, err
	}
	chosen, err := archived(ctx, histories, r)
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no archived message of source %s has one of these ids or msg_ids; look for them with outbox-relay messages show", s.Source.Name)
	}
	view := &Resent{Applied: r.Apply}
	for i := range chosen {
		m := &chosen[i]
		line := ResentLine{Line: LineOf(rows, &m.Message), History: m.History.String(), ArchivedAt: m.At}
		line.Problem, err = resendOne(ctx, histories, m, r.Apply, note(m, r.Who.User+"@"+r.Who.Host, r.Who.Reason))
		if err != nil {
			return view, err
		}
		if line.Problem == "" {
			view.Count++
			if r.Apply {
				s.Log.Warn().Str("message_id", m.MsgID).Stringer("table", m.Table).Str("user", r.Who.User).Str("host", r.Who.Host).Str("reason", r.Who.Reason).
					Msg("an operator resends a message from the history")
			}
		}
		view.Messages = append(view.Messages, line)
	}
	return view, nil
}

// note is what the row's last_error keeps.
func note(m *history.Archived, who, reason string) string {
	return strings.TrimSuffix(fmt.Sprintf("resent from %s by %s: %s", m.History, who, reason), ": ")
}

// resendOne brings a message back, or says why it stays.
func resendOne(ctx context.Context, histories *history.Histories, m *history.Archived, apply bool, note string) (problem string, err error) {
	if apply {
		err = histories.Resend(ctx, *m, note)
	} else {
		err = histories.CanResend(ctx, *m)
	}
	switch {
	case errors.Is(err, history.ErrInTable):
		return "its table has a message of that id or msg_id", nil
	case errors.Is(err, store.ErrFilter):
		return err.Error(), nil
	}
	return "", err
}

// archived finds the messages that were named, each once. Of one that is in a history more than once, the newest is meant.
func archived(ctx context.Context, histories *history.Histories, r ResendRequest) ([]history.Archived, error) {
	var found []history.Archived
	for _, arg := range r.Names {
		some, err := histories.Show(ctx, arg)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	if len(r.MsgIDs) > 0 {
		some, err := histories.Find(ctx, store.Filter{MsgIDs: r.MsgIDs})
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	var chosen []history.Archived
	seen := map[string]bool{}
	for i := range found {
		m := &found[i]
		if r.Table != "" && !strings.EqualFold(r.Table, m.Table.Name) && !strings.EqualFold(r.Table, m.Table.String()) {
			continue
		}
		if key := m.Table.String() + " " + m.MsgID; !seen[key] {
			seen[key] = true
			chosen = append(chosen, *m)
		}
	}
	return chosen, nil
}
