package oracle

import (
	"time"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/outbox"
)

// Row is one row of a local message table at the end of the run.
type Row struct {
	Table      string // database.table
	ID         uint64
	MsgID      string
	Status     outbox.Status
	RetryCount int
	// NextRetry is the next_retry_time as the server prints it, "" when NULL.
	NextRetry string
	// LastError is the reason a person sees, "" when NULL or when the table has no such column.
	LastError string
}

// Sample is the saved checkpoint at one moment, with what it must not cover.
type Sample struct {
	At       time.Time
	Position position.Position
	Epoch    int64
	// Unsettled are messages that were pending, and not handed to the sweeper, when the table was read. Read it after
	// the checkpoint: what is unsettled then was unsettled when the checkpoint was saved.
	Unsettled []string
	// Inside says why the position is no transaction's end, "" when it is one or nobody looked.
	Inside string
	// Reset says that an operator moved the checkpoint since the sample before.
	Reset bool
}

// Fence says that every message numbered up to Seq in the ledger lies before a place in the server's binlog.
// Take Seq first, then the server's binlog end.
type Fence struct {
	Seq    uint64
	Server string // as in position.Position, "" when there is only one server
	File   string
	Pos    uint64
}

// Evidence is what is compared with the ledger.
type Evidence struct {
	Records []Record
	// Rows is nil when the table was not read; then nothing is said about statuses, and an unknown outcome is judged by
	// the records alone.
	Rows    []Row
	Samples []Sample
	Fences  []Fence
}

// Options say what a run allows.
type Options struct {
	// Duplicates allows copies (after a crash); they are counted all the same.
	Duplicates bool
	// Retries allows retry_count above zero (a topic refused for a while).
	Retries bool
	// Source is what the outbox_source header must be, "" to leave it.
	Source string
	// Tolerance is how far from its due time a delayed message may be seen; zero is one second.
	Tolerance time.Duration
	// Examples bounds the messages named for each fault; zero is 10.
	Examples int
}
