package kgoinbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"os/signal"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/inbox/kgoinbox"
)

// A service that credits points for paid orders, until SIGTERM.
func Example() {
	var db *sql.DB // the service's pool
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	in, err := inbox.New(db, inbox.Config{Group: "points"})
	if err != nil {
		return
	}
	_ = kgoinbox.Run(ctx, in, func(ctx context.Context, tx *sql.Tx, d *inbox.Delivery) error {
		var order struct{ Customer, Points int }
		if err := json.Unmarshal(d.Value, &order); err != nil {
			return inbox.Permanent(err) // no retry will mend it
		}
		_, err := tx.ExecContext(ctx, "UPDATE account SET points = points + ? WHERE id = ?", order.Points, order.Customer)
		return err
	}, kgoinbox.Config{
		Client: []kgo.Opt{kgo.SeedBrokers("127.0.0.1:9092"), kgo.InstanceID("points-0")},
		Topics: []string{"order-events"},
		Policy: inbox.Policy{DeadLetterTopic: "order-events.points.dead"},
	}, zerolog.Nop())
}
