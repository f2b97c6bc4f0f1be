package archive

import (
	"context"

	"example.com/outbox-relay/internal/archive/history"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Rows is what archiving does to the tables; history.Histories is the real one.
type Rows interface {
	Tables() []outbox.Table
	// Follow makes the table's history, or adds the columns that it lacks.
	Follow(ctx context.Context, table outbox.Table) error
	Lanes(table outbox.Table) int
	Look(ctx context.Context, table outbox.Table, lane int, from store.Spot, limit int) (history.Looked, error)
	// Move moves rows in one transaction: those that may still go.
	Move(ctx context.Context, table outbox.Table, ids []uint64) (int, error)
}

// Replica tells how the replicas do.
type Replica interface {
	// Applied returns nil once the replica has applied everything that the primary had committed at the call.
	Applied(ctx context.Context) error
}
