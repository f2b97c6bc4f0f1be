// Package orders shows outbox with gorm: within a transaction its ConnPool is an outbox.Execer.
package orders

import (
	"context"

	"gorm.io/gorm"

	"example.com/outbox-relay/outbox"
)

// Order is a row of the table orders.
type Order struct {
	Number string `gorm:"primaryKey" json:"number"`
	Amount int64  `json:"amount"`
}

// Pay stores an order and announces it, both or neither.
func Pay(ctx context.Context, db *gorm.DB, order Order) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&order).Error; err != nil {
			return err
		}
		// Outside of a transaction the ConnPool is the pool itself, which Put refuses.
		_, err := outbox.Put(ctx, tx.Statement.ConnPool, outbox.Message{
			ID: "order-" + order.Number + "-paid", Topic: "orders", Key: order.Number, Body: order,
		})
		return err
	})
}
