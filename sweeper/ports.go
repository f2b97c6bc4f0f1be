package sweeper

import (
	"context"
	"time"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// Tables is what the sweeper does to the local message tables, by role; store.Store has them all.
type Tables struct {
	Finder
	Claimer
	Marker
}

// TablesOf returns the roles of one that has them all.
func TablesOf(rows interface {
	Finder
	Claimer
	Marker
},
) Tables {
	return Tables{Finder: rows, Claimer: rows, Marker: rows}
}

// Finder finds rows that are the sweeper's.
type Finder interface {
	// Now returns the database's clock, as next_retry_time is compared with it.
	Now(ctx context.Context) (string, error)
	Candidates(ctx context.Context, q store.Query) ([]outbox.Row, error)
	Backlog(ctx context.Context, q store.Query) ([]outbox.Ref, error)
	// Parked returns the first rows that are parked in a slot, of each table by id.
	Parked(ctx context.Context, slot store.Slot, limit int) ([]outbox.Row, error)
	// NextDue returns when the nearest row that is not due yet becomes due. It is asked before the candidates are read.
	NextDue(ctx context.Context) (time.Time, bool, error)
}

// Claimer takes rows up and gives them back.
type Claimer interface {
	Claim(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error)
	ClaimEarly(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error)
	ClaimParked(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error)
	Release(ctx context.Context, refs []outbox.Ref) error
	// Park leaves rows until ClaimParked takes them.
	Park(ctx context.Context, rows []store.Parking) error
}

// Marker writes what came of rows.
type Marker interface {
	MarkSent(ctx context.Context, refs []outbox.Ref) (int64, error)
	MarkFailed(ctx context.Context, failures []store.Failure) ([]outbox.Ref, error)
	MarkDead(ctx context.Context, failures []store.Failure) error
}

// Lines are the lines in which messages wait, of topics and of keys; relay.Lines is the real one. It may be used
// concurrently. An error means that the session is ending.
type Lines interface {
	// Work returns the lines to do something about. A draining one is among them until it is handed back or Blocked.
	Work(now time.Time) order.Work
	// Closed returns the topics that a general sweep must leave out.
	Closed() []string
	// Begin says what may be sent of a line: all, the first alone, or nothing. With a key's line the table is read next.
	Begin(line order.Name) order.Way
	// Report takes what came of it.
	Report(line order.Name, o order.Outcome)
	// Hold lets the stream hold what is new of a line, and reports whether it does: then the table shows all that was
	// before it. It waits for that, not for long. Holding ends by itself when it takes long.
	Hold(ctx context.Context, line order.Name) bool
	// Held returns which rows the stream holds.
	Held(line order.Name) map[outbox.Ref]bool
	// Open lets what the stream holds go first, and opens the line: after the lone message that Begin has allowed was
	// acked, or when a hold has left nothing in the table. It reports false when the stream had to give up holding.
	Open(ctx context.Context, line order.Name) (opened bool, err error)
}

// Letters knows the dead letters behind which keys wait; relay has the real one. But for Refresh it may be used
// concurrently.
type Letters interface {
	// Refresh follows what persons have decided about dead letters. It is called before each pass.
	Refresh(ctx context.Context) error
	// Waits returns the line of a due row whose key waits, in which to park it.
	Waits(row *outbox.Row) (line order.Name, waits bool)
	// Died reports, before the table is changed, that a row is a dead letter, and Buried whether the table could be
	// changed. Spent reports that messages may have become dead by spending their retries.
	Died(row *outbox.Row)
	Buried(ref outbox.Ref, written bool)
	Spent()
	// TurnOf says what may be done with a parked row.
	TurnOf(line order.Name, ref outbox.Ref) order.Turn
}

// Stream says how far the binlog has been dealt with.
type Stream interface {
	// Passed returns nil once everything that a read of the table could see before the call is settled by the stream, as
	// far as the stream can see it at all. ErrBehind when that takes too long.
	Passed(ctx context.Context) error
	// Admitted returns nil once the stream has seen everything that a read of the table could see before the call: sent
	// it, deferred it, or holds it. It does not wait for long.
	Admitted(ctx context.Context) error
}

// Router makes the record of a row, or a *router.Refusal.
type Router interface {
	Route(row *outbox.Row, position string) (*router.Record, error)
}

// Publisher sends records.
type Publisher interface {
	// Publish hands a record over and calls done once, from another goroutine, with nil after the ack. done must not
	// block. After an error done is not called, the session is ending, and nothing that comes after the record may be
	// sent.
	Publish(ctx context.Context, rec *router.Record, done func(error)) error
	// Try sends one record of a row's topic alone and waits for its ack, not for long.
	Try(ctx context.Context, topic string, rec *router.Record) error
	// Published reports whether a message is known to have been published by a process that died before marking it.
	Published(topic, msgID string) bool
	// Marked reports that the rows of everything published so far are marked.
	Marked()
	// Gone is closed once no result will come any more.
	Gone() <-chan struct{}
}

// Broker answers questions about Kafka.
type Broker interface {
	// Fill reads the bodies of rows that have theirs staged, of as many rows from the first on as may be in memory
	// together. It returns how many those are, and for each of them why it has none.
	Fill(ctx context.Context, rows []outbox.Row) (n int, errs []error)
	// Appeared reports whether a topic that did not exist when it was last tried exists now.
	Appeared(ctx context.Context, topic string) bool
	// Classify says what a failure means, and the metric label of its reason.
	Classify(err error) (retry.Class, string)
}
