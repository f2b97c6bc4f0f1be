package inbox

import (
	"context"
)

// Outbox is where Emit writes.
type Outbox interface{}

type causeKey struct{}

// cause is the message that is being handled in a context.
type cause struct {
	id string
}

// Caused returns a context in which messages are emitted as caused by the message of that ID.
func (in *Inbox) Caused(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, causeKey{}, &cause{id: id})
}
