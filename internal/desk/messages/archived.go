package messages

import (
	"context"
	"errors"
	"fmt"

	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Archived says where an archived message lies.
type Archived struct {
	Table string `json:"table"`
	At    string `json:"archived_at"`
}

// archivedStories returns the archived messages of a name. A history that the user may not read is a problem that is
// returned as text.
func archivedStories(ctx context.Context, s *desk.Scope, rows *store.Store, name string, content bool) (stories []Story, problem string, err error) {
	histories, err := wire.Histories(s.Config, rows, s.Log)
	if err != nil {
		return nil, "", err
	}
	found, err := histories.Show(ctx, name)
	if errors.Is(err, store.ErrPrivilege) {
		return nil, err.Error(), nil
	}
	if err != nil {
		return nil, "", err
	}
	stories = make([]Story, len(found))
	for i := range found {
		m := &found[i]
		stories[i] = storyOf(rows, &m.Message, content)
		stories[i].Archived = &Archived{Table: m.History.String(), At: m.At}
		what := "It was sent and acked by Kafka, and nothing has reported that it was consumed."
		if m.Status == outbox.Consumed {
			what = "It was sent, and a consumer has reported back."
		}
		stories[i].Stands = []string{what, fmt.Sprintf("It was archived. Send it again: outbox-relay messages resend --from-history %s --yes", m.MsgID)}
	}
	return stories, "", nil
}
