package relay

import (
	"context"
	"time"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/sweeper"
)

// Reader is the stream of committed transactions; canal.Reader is the real one. Next and Stream are for one caller,
// the rest may be called concurrently.
type Reader interface {
	Resolve(ctx context.Context, saved position.Position, have bool, start string) (canal.Start, error)
	Stream(ctx context.Context, from position.Position) error
	Next(ctx context.Context) (*assemble.Transaction, error)
	End(ctx context.Context) (position.Position, error)
	State() canal.State
	Close() error
}

// Tables is what the relay does to the local message tables, by role; store.Store has them all. It may be used
// concurrently.
type Tables struct {
	Marks   Marks
	Lookup  Lookup
	Backlog Backlog
	Letters Letters
	Survey  Survey
	Sweep   sweeper.Tables
}

// TablesOf returns the roles of one that has them all.
func TablesOf(rows interface {
	Marks
	Lookup
	Backlog
	Letters
	Survey
	sweeper.Finder
	sweeper.Claimer
	sweeper.Marker
},
) Tables {
	return Tables{
		Marks: rows, Lookup: rows, Backlog: rows, Letters: rows, Survey: rows, Sweep: sweeper.TablesOf(rows),
	}
}

// Marks writes what became of rows.
type Marks interface {
	MarkSent(ctx context.Context, refs []outbox.Ref) (int64, error)
	MarkFailed(ctx context.Context, failures []store.Failure) ([]outbox.Ref, error)
	MarkDead(ctx context.Context, failures []store.Failure) error
	Defer(ctx context.Context, refs []outbox.Ref) error
	// Park leaves rows until the sweeper claims them as parked ones, at a time that tells their key.
	Park(ctx context.Context, rows []store.Parking) error
}

// Lookup looks rows up.
type Lookup interface {
	Lookup(ctx context.Context, refs []outbox.Ref) (map[outbox.Ref]store.Found, error)
}

// Backlog knows, at a start, what was left in the tables.
type Backlog interface {
	ClosedTopics(ctx context.Context, lease time.Duration, everything bool) ([]string, error)
	ClaimedTopics(ctx context.Context, lease time.Duration) ([]string, error)
	// LastIDs returns the highest id of each table.
	LastIDs(ctx context.Context) (map[outbox.Table]uint64, error)
	// Unrecorded returns pending rows without a next_retry_time, up to the given id of each table, by id.
	Unrecorded(ctx context.Context, last map[outbox.Table]uint64, limit int) ([]outbox.Ref, error)
	Defer(ctx context.Context, refs []outbox.Ref) error
}

// Letters knows the dead letters, and what is parked behind them.
type Letters interface {
	// DeadLetters returns the ids of the dead letters of each table that is there.
	DeadLetters(ctx context.Context) (map[outbox.Table][]uint64, error)
	// ReadDead hands those of the rows with the ids to visit that are dead letters.
	ReadDead(ctx context.Context, table outbox.Table, ids []uint64, visit func(*outbox.Row)) error
	ParkedSlots(ctx context.Context) ([]store.Slot, error)
	Lookup(ctx context.Context, refs []outbox.Ref) (map[outbox.Ref]store.Found, error)
	Park(ctx context.Context, rows []store.Parking) error
	// CanPark returns an error when a table can't keep the time of a parked row.
	CanPark() error
}

// Survey reads what is shown of the tables.
type Survey interface {
	Offset(ctx context.Context) (time.Duration, error)
	Count(ctx context.Context) (counts map[outbox.Status]int64, oldestPending time.Duration, err error)
	CountParked(ctx context.Context) (rows, keys int64, err error)
	// Refresh looks for new tables and changed columns.
	Refresh(ctx context.Context) error
}

// Broker is the Kafka side; kafka.Client is the real one. It may be used concurrently.
type Broker interface {
	NewProducer(results func(kafka.Result)) (Producer, error)
	Probe(ctx context.Context, rec *router.Record) (partition int32, offset int64, err error)
	Topic(ctx context.Context, name string) (kafka.Topic, error)
	CreateTopic(ctx context.Context, name string) error
	Reachable(ctx context.Context) error
	Bodies(ctx context.Context, refs []outbox.BodyRef) []kafka.Body
	TailMsgIDs(ctx context.Context, from map[string]map[int32]int64, since time.Time, topics []string, limit int) (ids *kafka.Published, complete bool, err error)
}

// Producer publishes records in the order of the calls; kafka.Producer is the real one.
type Producer interface {
	// Send hands one record over and may block at the client's bounds. Its result comes later with the token.
	Send(ctx context.Context, rec *router.Record, token any) error
	// Close waits until every record handed over has its result, at most until ctx ends. No result comes afterwards.
	Close(ctx context.Context) error
}

// Checkpoints keeps the saved position; checkpoint.Store is the real one. It may be used concurrently.
type Checkpoints interface {
	NextEpoch(ctx context.Context, source string) (int64, error)
	Load(ctx context.Context, source string) (checkpoint.Record, error)
	Save(ctx context.Context, source string, rec checkpoint.Record) error
}

// Lock elects the leader of a source.
type Lock interface {
	// Acquire waits until the lock is got or ctx ends.
	Acquire(ctx context.Context) (Held, error)
}

// Held is a lock that was got.
type Held interface {
	// Lost is closed once the lock is not surely held any more.
	Lost() <-chan struct{}
	// Valid reports by the clock whether the lock is surely still held. After a pause of the process it tells before
	// Lost.
	Valid() bool
	Release(ctx context.Context) error
}
