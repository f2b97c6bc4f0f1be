package cli

import (
	"context"
	"errors"
	"fmt"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// archivedView tells where an archived message lies.
type archivedView struct {
	Table string `json:"table"`
	At    string `json:"archived_at"`
}

// archivedStories tells the archived messages of a name. A history that the user may not read is said and left out.
func (a *app) archivedStories(ctx context.Context, rows *store.Store, name string, content bool) ([]storyView, error) {
	found, err := rows.ShowArchived(ctx, name)
	if errors.Is(err, store.ErrPrivilege) {
		a.say("the history was not looked at: %s", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stories := make([]storyView, len(found))
	for i := range found {
		m := &found[i]
		stories[i] = storyOf(rows, &m.Message, content)
		stories[i].Archived = &archivedView{Table: m.History.String(), At: m.At}
		what := "It was sent and acked by Kafka, and nothing has reported that it was consumed."
		if m.Status == outbox.Consumed {
			what = "It was sent, and a consumer has reported back."
		}
		stories[i].Stands = []string{what, fmt.Sprintf("It was archived. Send it again: outbox-relay messages resend --from-history %s --yes", m.MsgID)}
	}
	return stories, nil
}
