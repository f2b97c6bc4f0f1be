// Package orders shows outbox with database/sql.
package orders

import (
	"context"
	"database/sql"

	"example.com/outbox-relay/outbox"
)

// Pay stores an order and announces it, both or neither.
func Pay(ctx context.Context, db *sql.DB, number string, amount int64) error {
	return outbox.Within(ctx, db, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (number, amount) VALUES (?, ?)", number, amount); err != nil {
			return err
		}
		_, err := outbox.Put(ctx, tx, outbox.Message{
			ID: "order-" + number + "-paid", Topic: "orders", Key: number, Body: map[string]any{"number": number, "amount": amount},
		})
		return err
	})
}
