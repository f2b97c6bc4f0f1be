// Package orders shows outbox with ent: *ent.Tx is an outbox.Execer when its code is generated with the feature sql/execquery.
package orders

import (
	"context"
	"errors"

	"example.com/outbox-relay/examples/ent/ent"
	"example.com/outbox-relay/outbox"
)

//go:generate go run entgo.io/ent/cmd/ent generate --feature sql/execquery ./ent/schema

// Pay stores an order and announces it, both or neither.
func Pay(ctx context.Context, client *ent.Client, number string, amount int64) error {
	tx, err := client.Tx(ctx)
	if err != nil {
		return err
	}
	order, err := tx.Order.Create().SetNumber(number).SetAmount(amount).Save(ctx)
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	// Pass the *ent.Tx: tx.Client() can't be told from a client without a transaction, and Put refuses it.
	_, err = outbox.Put(ctx, tx, outbox.Message{
		ID: "order-" + number + "-paid", Topic: "orders", Key: number, Body: order,
	})
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
