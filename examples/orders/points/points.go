// Package points is a service that gives customers points for what they have paid: a point for each full euro.
package points

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/examples/orders/order"
	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/inbox/kgoinbox"
)

// Group names the consumer: among Kafka's groups, and in the table of what it has handled.
const Group = "points"

// DeadLetterTopic is where events go that can't be handled.
const DeadLetterTopic = "orders.points.dead"

// Schema returns the statements that make the service's tables. entry has no unique key on the order: only the inbox keeps an
// order's points from being given twice.
func Schema() []string {
	return []string{
		`CREATE TABLE IF NOT EXISTS account (customer VARCHAR(64) PRIMARY KEY, points BIGINT NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS entry (id BIGINT PRIMARY KEY AUTO_INCREMENT, order_id BIGINT NOT NULL, customer VARCHAR(64) NOT NULL, points BIGINT NOT NULL)`,
		inbox.Schema(inbox.SchemaOptions{IfNotExists: true}),
	}
}

// Run gives points until ctx ends.
func Run(ctx context.Context, db *sql.DB, brokers []string, log zerolog.Logger) error {
	in, err := inbox.New(db, inbox.Config{Group: Group})
	if err != nil {
		return err
	}
	return kgoinbox.Run(ctx, in, give, kgoinbox.Config{
		// The partitions of one that was killed go to the next within six seconds instead of 45.
		Client: []kgo.Opt{kgo.SeedBrokers(brokers...), kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(time.Second)},
		Topics: []string{order.Topic},
		Policy: inbox.Policy{DeadLetterTopic: DeadLetterTopic},
	}, log)
}

// give handles one event, in the transaction in which the inbox has recorded it: the points and the record happen together.
func give(ctx context.Context, tx *sql.Tx, d *inbox.Delivery) error {
	var paid order.Paid
	if err := json.Unmarshal(d.Value, &paid); err != nil {
		return inbox.Permanent(err)
	}
	n := paid.Cents / 100
	if _, err := tx.ExecContext(ctx, "INSERT INTO entry (order_id, customer, points) VALUES (?, ?, ?)", paid.Order, paid.Customer, n); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO account (customer, points) VALUES (?, ?) ON DUPLICATE KEY UPDATE points = points + ?", paid.Customer, n, n)
	return err
}
