package messages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/reports/acks"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// UnconsumedLook is how many sent messages ListUnconsumed looks at, at most: about two seconds of the server.
const UnconsumedLook = 1_000_000

// UnconsumedLine is a message that was sent and that nobody, or not every group, has reported.
type UnconsumedLine struct {
	Line
	// Sent is when it was marked as sent, by update_time.
	Sent    string   `json:"sent,omitempty"`
	Reports []string `json:"reported_by"`
	// Missing are the groups of acks.groups that have not reported; nil where the configuration names none.
	Missing []string `json:"missing"`
}

// Unconsumed is a list of such messages, the oldest first.
type Unconsumed struct {
	Messages []UnconsumedLine `json:"messages"`
	// Complete says that there are no others.
	Complete bool `json:"complete"`
}

// ListUnconsumed lists what was sent longer than an age ago and has not been reported.
func ListUnconsumed(ctx context.Context, c *config.Config, rows *store.Store, q acks.UnreportedQuery, limit int) (Unconsumed, error) {
	view := Unconsumed{Messages: []UnconsumedLine{}}
	reports, err := wire.Acks(c, rows)
	if err != nil {
		return view, err
	}
	found, complete, err := reports.ListUnreported(ctx, q, limit, UnconsumedLook)
	if err != nil {
		return view, err
	}
	view.Complete = complete
	refs := make([]outbox.Ref, len(found))
	for i := range found {
		refs[i] = found[i].Ref()
	}
	reported, err := reports.Reported(ctx, refs)
	if err != nil {
		return view, err
	}
	for i := range found {
		m := &found[i]
		line := UnconsumedLine{Line: LineOf(rows, &m.Message), Sent: m.Updated, Reports: reported[m.Ref()]}
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
func reportedBy(ctx context.Context, c *config.Config, taken *acks.Acks, m *store.Message) ([]string, error) {
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
	reported, err := taken.Reported(ctx, []outbox.Ref{m.Ref()})
	if err != nil {
		return nil, err
	}
	have := reported[m.Ref()]
	if len(have) == 0 {
		return []string{fmt.Sprintf("None of the groups that have to report it has: %s.", strings.Join(groups, ", "))}, nil
	}
	return []string{fmt.Sprintf("Reported by %s; not yet by %s.", strings.Join(have, ", "), strings.Join(missingGroups(c, m.Topic, have), ", "))}, nil
}
