// Package messages is what an operator does with the messages themselves: list and count them, learn why one waits, send
// some again or give them up.
package messages

import (
	"context"

	"example.com/outbox-relay/store"
)

// Listing is a list of messages.
type Listing struct {
	Messages []Line `json:"messages"`
	// Cursor is set when there may be more.
	Cursor string `json:"cursor,omitempty"`
}

// List lists what filters choose, of each table the newest first.
func List(ctx context.Context, rows *store.Store, filters []store.Filter) (Listing, error) {
	view := Listing{Messages: []Line{}}
	for _, f := range filters {
		found, err := rows.List(ctx, f)
		if err != nil {
			return view, err
		}
		for i := range found {
			view.Messages = append(view.Messages, LineOf(rows, &found[i]))
		}
		if f.Limit > 0 && len(found) >= f.Limit && len(filters) == 1 {
			view.Cursor = found[len(found)-1].Cursor
		}
	}
	return view, nil
}
