package saramainbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os/signal"
	"syscall"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/inbox/saramainbox"
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
	sc := saramainbox.NewConfig()
	sc.Net.SASL.Enable = true // and whatever else the brokers ask for
	err = saramainbox.Run(ctx, in, func(ctx context.Context, tx *sql.Tx, d *inbox.Delivery) error {
		var order struct{ Customer, Points int }
		if err := json.Unmarshal(d.Value, &order); err != nil {
			return inbox.Permanent(err) // no retry will mend it
		}
		_, err := tx.ExecContext(ctx, "UPDATE account SET points = points + ? WHERE id = ?", order.Points, order.Customer)
		return err
	}, saramainbox.Config{
		Brokers: []string{"127.0.0.1:9092"},
		Topics:  []string{"order-events"},
		Sarama:  sc,
		Policy:  inbox.Policy{DeadLetterTopic: "order-events.points.dead"},
	}, zerolog.Nop())
	if stopped, ok := errors.AsType[*inbox.Stopped](err); ok {
		_ = stopped.Offset // with Poison: inbox.Stop, the message before which it stands
	}
}
