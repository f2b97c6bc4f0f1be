// Package orders shows outbox with sqlx: *sqlx.Tx is an outbox.Execer.
package orders

import (
	"context"

	"github.com/jmoiron/sqlx"

	"example.com/outbox-relay/outbox"
)

// Order is a row of the table orders.
type Order struct {
	Number string `db:"number" json:"number"`
	Amount int64  `db:"amount" json:"amount"`
}

// Pay stores an order and announces it, both or neither.
func Pay(ctx context.Context, db *sqlx.DB, order Order) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if _, err := tx.NamedExecContext(ctx, "INSERT INTO orders (number, amount) VALUES (:number, :amount)", order); err != nil {
		return err
	}
	_, err = outbox.Put(ctx, tx, outbox.Message{
		ID: "order-" + order.Number + "-paid", Topic: "orders", Key: order.Number, Body: order,
	})
	if err != nil {
		return err
	}
	return tx.Commit()
}
