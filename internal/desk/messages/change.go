package messages

import (
	"context"
	"fmt"

	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Action is what is done with messages, as results name it.
type Action string

// The actions.
const (
	Retry   Action = "retry"   // they are due now, with all their retries ahead
	Discard Action = "discard" // they are given up
)

// sampleSize is how many of the chosen messages are shown.
const sampleSize = 10

// Changed is what retry or discard would do, or has done.
type Changed struct {
	Action Action `json:"action"`
	// Applied says that Messages were changed; otherwise they would be.
	Applied  bool   `json:"applied"`
	Messages int64  `json:"messages"`
	Sample   []Line `json:"sample"`
}

// Change does something with what filters choose or, unless apply is set, says what it would do. An error says how many
// messages were changed before it.
func Change(ctx context.Context, rows *store.Store, action Action, filters []store.Filter, apply bool) (Changed, error) {
	act := rows.Retry
	if action == Discard {
		act = rows.Discard
	}
	view := Changed{Action: action, Applied: apply, Sample: []Line{}}
	for _, f := range filters {
		if !apply && f.Limit == 0 { // a limit takes the oldest, a list shows the newest
			var err error
			if view.Sample, err = sample(ctx, rows, view.Sample, f); err != nil {
				return view, err
			}
		}
		n, err := act(ctx, f, !apply)
		view.Messages += n
		if err != nil {
			if view.Messages > 0 && apply {
				err = fmt.Errorf("%w; %s were changed before that", err, human.Plural(view.Messages, "message"))
			}
			return view, err
		}
	}
	return view, nil
}

// sample lists some of the messages that an action would take.
func sample(ctx context.Context, rows *store.Store, lines []Line, f store.Filter) ([]Line, error) {
	if len(f.Statuses) == 0 {
		f.Statuses = []outbox.Status{outbox.Failed, outbox.Dead}
	}
	f.Limit = max(1, sampleSize-len(lines))
	found, err := rows.List(ctx, f)
	for i := range found {
		lines = append(lines, LineOf(rows, &found[i]))
	}
	return lines, err
}
