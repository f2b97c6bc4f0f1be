package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// unconsumedLook is how many sent messages a list looks at, at most: about two seconds of the server.
const unconsumedLook = 1_000_000

// unconsumedLine is a message that was sent and that nobody, or not every group, has reported.
type unconsumedLine struct {
	messageLine
	// Sent is when it was marked as sent, by update_time.
	Sent    string   `json:"sent,omitempty"`
	Reports []string `json:"reported_by"`
	// Missing are the groups of acks.groups that have not reported; nil where the configuration names none.
	Missing []string `json:"missing"`
}

type unconsumedView struct {
	Messages []unconsumedLine `json:"messages"`
	// Complete tells that there are no others.
	Complete bool `json:"complete"`
}

// Text writes a table.
func (v unconsumedView) Text(p *render.Page) {
	if len(v.Messages) == 0 && v.Complete {
		p.Line("no messages")
		return
	}
	if len(v.Messages) > 0 {
		p.Header("TABLE", "ID", "MSG_ID", "TOPIC", "AGE", "SENT", "REPORTED BY", "MISSING")
	}
	for i := range v.Messages {
		m := &v.Messages[i]
		missing := "anybody"
		if m.Missing != nil {
			missing = strings.Join(m.Missing, ",")
		}
		p.Row(m.Table, m.ID, human.Cut(m.MsgID, 40), human.Cut(m.Topic, 40), seconds(m.Age), m.Sent, human.Cut(strings.Join(m.Reports, ","), 60), human.Cut(missing, 60))
	}
	if !v.Complete {
		p.Line("there may be more: raise --limit, or narrow it by --topic (it looks at %s sent messages at most)", human.Count(unconsumedLook, 0))
	}
}

// unconsumed lists what was sent longer than an age ago and has not been reported, the oldest first.
func (a *app) unconsumed(cmd *cobra.Command, f *filterFlags, age time.Duration, args []string) error {
	switch {
	case age < 0:
		return misused(cmd, errors.New("--unconsumed-for must not be negative"))
	case len(args)+len(f.msgIDs)+len(f.statuses) > 0 || f.key+f.failure+f.table+f.cursor != "" || f.olderThan+f.newerThan > 0:
		return misused(cmd, errors.New("--unconsumed-for goes with --topic and --limit only: it means sent messages"))
	}
	return a.withRows(cmd.Context(), func(s *desk.Scope, rows *store.Store) error {
		view, err := listUnconsumed(cmd.Context(), s.Config, rows, store.UnreportedQuery{Topic: f.topic, For: age}, f.limit)
		if err != nil {
			return err
		}
		return a.print(view)
	})
}

func listUnconsumed(ctx context.Context, c *config.Config, rows *store.Store, q store.UnreportedQuery, limit int) (unconsumedView, error) {
	view := unconsumedView{Messages: []unconsumedLine{}}
	found, complete, err := rows.ListUnreported(ctx, q, limit, unconsumedLook)
	if err != nil {
		return view, err
	}
	view.Complete = complete
	refs := make([]outbox.Ref, len(found))
	for i := range found {
		refs[i] = found[i].Ref()
	}
	reported, err := rows.Reported(ctx, refs)
	if err != nil {
		return view, err
	}
	for i := range found {
		m := &found[i]
		line := unconsumedLine{messageLine: lineOf(rows, &m.Message), Sent: m.Updated, Reports: reported[m.Ref()]}
		line.Missing = missingGroups(c, m.Topic, line.Reports)
		if line.Reports == nil {
			line.Reports = []string{}
		}
		view.Messages = append(view.Messages, line)
	}
	return view, nil
}

// missingGroups returns the groups that have to report a topic's messages and have not, nil where none is named.
func missingGroups(c *config.Config, topic string, reported []string) []string {
	groups, ok := c.Acks.Groups[topic]
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(groups), func(group string) bool { return slices.Contains(reported, group) })
}

// reportedBy says who has reported a message and who has not.
func reportedBy(ctx context.Context, c *config.Config, rows *store.Store, m *store.Message) ([]string, error) {
	groups := c.Acks.Groups[m.Topic]
	switch {
	case m.Status == outbox.Consumed && len(groups) > 0:
		return []string{fmt.Sprintf("All groups that have to report it have: %s.", strings.Join(groups, ", "))}, nil
	case m.Status == outbox.Dead, m.Status == outbox.Discarded, m.Status == outbox.Foreign, len(groups) < 2:
		if m.Status == outbox.Sent && len(groups) == 1 {
			return []string{fmt.Sprintf("Group %s has to report it and has not.", groups[0])}, nil
		}
		return nil, nil
	}
	reported, err := rows.Reported(ctx, []outbox.Ref{m.Ref()})
	if err != nil {
		return nil, err
	}
	have := reported[m.Ref()]
	if len(have) == 0 {
		return []string{fmt.Sprintf("None of the groups that have to report it has: %s.", strings.Join(groups, ", "))}, nil
	}
	return []string{fmt.Sprintf("Reported by %s; not yet by %s.", strings.Join(have, ", "), strings.Join(missingGroups(c, m.Topic, have), ", "))}, nil
}
