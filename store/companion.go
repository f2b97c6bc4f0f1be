package store

import (
	"context"
	"database/sql"

	"example.com/outbox-relay/outbox"
)

// Companion is a kind of table of which one stands beside each message table: its history, or its table of reports. Init makes
// it and Inspect checks it together with the message table.
type Companion interface {
	// Missing returns the statements that make the companion of a table, or what it lacks. altered tells that statements
	// before them change the message table itself.
	Missing(ctx context.Context, conn *sql.Conn, t *Table, altered bool) ([]string, error)
	// MissingOfNew is Missing for a message table that is yet to be made.
	MissingOfNew(table outbox.Table) []string
	// Grants returns what an account, 'user'@'host', needs beyond what marking needs. With printOnly optional grants are listed
	// too.
	Grants(account string, tables []outbox.Table, printOnly bool) []string
	// Inspect adds what there is to say about the companion of a table to i.Report. An error ends the whole inspection.
	Inspect(ctx context.Context, i *Inspection, t *Table) error
}

// Probe is a statement that needs one privilege and touches no row. Without says what does not work without it.
type Probe struct {
	Privilege, Statement, Without string
}
