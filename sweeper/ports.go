package sweeper

import (
	"context"
	"time"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// Rows is what the sweeper does to the local message tables; store.Store is the real one.
type Rows interface {
	// Now returns the database's clock, as next_retry_time is compared with it.
	Now(ctx context.Context) (string, error)
	Candidates(ctx context.Context, q store.Query) ([]outbox.Row, error)
	Backlog(ctx context.Context, q store.Query) ([]outbox.Ref, error)
	Claim(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error)
	ClaimEarly(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error)
	Release(ctx context.Context, refs []outbox.Ref) error
	// Park leaves rows until ClaimParked takes them, Parked returns a slot's first ones, of each table by id.
	Park(ctx context.Context, rows []store.Parking) error
	Parked(ctx context.Context, slot store.Slot, limit int) ([]outbox.Row, error)
	ClaimParked(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error)
	MarkSent(ctx context.Context, refs []outbox.Ref) (int64, error)
	MarkFailed(ctx context.Context, failures []store.Failure) ([]outbox.Ref, error)
	MarkDead(ctx context.Context, failures []store.Failure) error
	// NextDue returns when the nearest row that is not due yet becomes due. It is asked before the candidates are read.
	NextDue(ctx context.Context) (time.Time, bool, error)
}

// Gate knows which topics are open; relay.Gate is the real one. Its errors mean that the session is ending.
type Gate interface {
	Closed() []string
	Work(now time.Time) (probe, drain []string, wait time.Duration)
	BeginProbe(topic string) (probe, open bool)
	ProbeAcked(ctx context.Context, topic string) error
	Close(topic, reason string, wait time.Duration)
	ProbeLater(topic string, wait time.Duration)
	Drain(topic string, acked bool)
	Hold(ctx context.Context, topic string) bool
	Unhold(topic string)
	// Held returns which rows of a topic the stream holds.
	Held(topic string) map[outbox.Ref]bool
	HandBack(ctx context.Context, topic string) (bool, error)
}

// Keys knows which keys wait behind a dead letter; relay.Keys is the real one.
type Keys interface {
	// Refresh follows what persons have decided about dead letters. It is called before each pass.
	Refresh(ctx context.Context) error
	// Waits returns the slot in which to park a due row whose key waits, 0 when it does not.
	Waits(row *outbox.Row) store.Slot
	// Died tells, before the table is told, that a row is a dead letter, and Buried whether the table could be told. Spent
	// tells that messages may have become dead by spending their retries.
	Died(row *outbox.Row)
	Buried(ref outbox.Ref, written bool)
	Spent()
	// Ready returns the slots of which something may be sendable, and Pending whether there are any. Again ends what Ready has
	// begun; topic may be "".
	Ready() []store.Slot
	Pending() bool
	Again(slot store.Slot, topic string, blocked bool)
	// May reports whether no dead letter is before a parked row, and Alone whether it was one, and goes alone.
	May(slot store.Slot, ref outbox.Ref) bool
	Alone(slot store.Slot, ref outbox.Ref) bool
	// Hold, Unhold and HandBack are for a key what they are for a topic.
	Hold(ctx context.Context, slot store.Slot) bool
	Unhold(slot store.Slot)
	HandBack(ctx context.Context, slot store.Slot) (bool, error)
}

// Stream tells how far the binlog has been dealt with.
type Stream interface {
	// Passed returns nil once everything that a read of the table could see before the call is settled by the stream, as
	// far as the stream can see it at all. ErrBehind when that takes too long.
	Passed(ctx context.Context) error
	// Admitted returns nil once the stream has seen everything that a read of the table could see before the call: sent it, deferred
	// it, or holds it. It does not wait for long.
	Admitted(ctx context.Context) error
}

// Router makes the record of a row, or a *router.Refusal.
type Router interface {
	Route(row *outbox.Row, position string) (*router.Record, error)
}

// Publisher sends records.
type Publisher interface {
	// Fill reads the bodies of rows that have theirs staged, of as many rows from the first on as may be in memory together. It
	// returns how many those are, and for each of them why it has none.
	Fill(ctx context.Context, rows []outbox.Row) (n int, errs []error)
	// Publish hands a record over and calls done once, from another goroutine, with nil after the ack. done must not
	// block. After an error done is not called, the session is ending, and nothing that comes after the record may be
	// sent.
	Publish(ctx context.Context, rec *router.Record, done func(error)) error
	// Published reports whether a message is known to have been published by a process that died before marking it.
	Published(topic, msgID string) bool
	// Marked tells that the rows of everything published so far are marked.
	Marked()
	// Gone is closed once no result will come any more.
	Gone() <-chan struct{}
	// Try sends one record of a row's topic alone and waits for its ack, not for long.
	Try(ctx context.Context, topic string, rec *router.Record) error
	// Appeared reports whether a topic that did not exist when it was last tried exists now.
	Appeared(ctx context.Context, topic string) bool
	// Classify says what a failure means, and the metric label of its reason.
	Classify(err error) (retry.Class, string)
}
