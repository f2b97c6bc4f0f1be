package assemble

import (
	"context"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Config says which tables' rows a Dispatcher brings, and within which bounds.
type Config struct {
	// Flavor is the server's, one of position.MySQL and position.MariaDB.
	Flavor string
	// Tables are the local message tables.
	Tables   mysql.Patterns
	Columns  outbox.Columns
	Statuses outbox.Statuses
	// BufferBytes bounds the memory that one transaction's rows need. What is above goes to a file in SpillDir ("": the
	// system's temporary folder), which has no name and is gone when the transaction is closed.
	BufferBytes int
	SpillDir    string
	// Closing, when it is closed, ends what waits.
	Closing <-chan struct{}
	// Waiting is called from Handle with what is waited for until the server answers, and with "" when that is over.
	Waiting func(what string)
}

// Server answers questions about the tables. The questions of one Dispatcher come one after the other.
type Server interface {
	// Query runs one statement and returns its whole answer.
	Query(ctx context.Context, statement string) (*mysql.Answer, error)
	// Columns reads the columns of a table in their order, none where the user sees no such table.
	Columns(ctx context.Context, t outbox.Table) ([]mysql.Column, error)
}
