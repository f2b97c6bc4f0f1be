package outboxtest_test

import (
	"context"
	"testing"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/outbox/outboxtest"
)

// pay is code that writes a message.
func pay(ctx context.Context, tx outbox.Execer, box outbox.Putter, order string) error {
	_, err := box.Put(ctx, tx, outbox.Message{
		ID: "order-" + order + "-paid", Topic: "orders", Key: order, Body: map[string]string{"order_id": order},
	})
	return err
}

// A test of code that writes messages.
func Example() {
	test := func(t *testing.T) {
		box := outboxtest.New(t)
		tx := box.Begin()
		if err := pay(t.Context(), tx, box, "4711"); err != nil {
			t.Fatal(err)
		}
		outboxtest.RequireNone(t, box) // not yet
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		outboxtest.RequireMessage(t, box, outbox.Message{Topic: "orders", Key: "4711", Body: map[string]string{"order_id": "4711"}})
	}
	_ = test
}
