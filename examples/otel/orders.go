// Package orders shows how a message carries on the trace of OpenTelemetry: consumers find it in the header traceparent.
package orders

import (
	"context"
	"database/sql"

	"go.opentelemetry.io/otel/propagation"

	"example.com/outbox-relay/outbox"
)

// TraceParent is the hook: the W3C traceparent of the span in ctx, "" without one.
func TraceParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// NewBox returns the Box of the service; it keeps one for its whole life.
func NewBox() (*outbox.Box, error) { return outbox.New(outbox.Config{TraceParent: TraceParent}) }

// Pay stores an order and announces it, both or neither, within the trace of ctx.
func Pay(ctx context.Context, db *sql.DB, box *outbox.Box, number string, amount int64) error {
	return outbox.Within(ctx, db, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (number, amount) VALUES (?, ?)", number, amount); err != nil {
			return err
		}
		_, err := box.Put(ctx, tx, outbox.Message{
			ID: "order-" + number + "-paid", Topic: "orders", Key: number, Body: map[string]any{"number": number, "amount": amount},
		})
		return err
	})
}
