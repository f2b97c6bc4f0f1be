package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Config describes a local message table to the producer. The zero value is the pattern's own: local_message in the
// connection's database.
type Config struct {
	// Table is where messages are written; without a Database it is in the connection's.
	Table Table
	// Columns gives the columns' names; zero means DefaultColumns.
	Columns Columns
	// Pending is the number of the status of a new message: 0 unless the relay's `statuses` say otherwise.
	Pending int
	Limits  Limits
	// ChunkRows and ChunkBytes bound one INSERT of PutAll; zero means 500 rows and 1 MiB. Escaping can double the bytes on the
	// wire; the servers' max_allowed_packet is 4 MiB or more. A message that is larger alone goes alone.
	ChunkRows, ChunkBytes int
	// Text allows a Body of bytes that is no JSON, such as XML. It must be UTF-8 all the same.
	Text bool
	// AllowPool allows a pool such as *sql.DB where a transaction belongs: for messages that go with no business row. Then PutAll
	// is not all or nothing.
	AllowPool bool
	// TraceParent returns the W3C traceparent of the span that ctx carries, "" for none. It goes to the column trace_parent, or to
	// the headers where there is only those, and nowhere where there are neither. A message with a header traceparent of its own
	// keeps that.
	TraceParent func(ctx context.Context) string
}

const (
	defaultTable      = "local_message"
	defaultChunkRows  = 500
	defaultChunkBytes = 1 << 20
	// maxChunkRows keeps a statement of 8 placeholders a row below the protocol's 65535.
	maxChunkRows = 8000
)

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	for _, bound := range []struct {
		name       string
		value, max int
	}{
		{"Limits.ID", c.Limits.ID, maxText},
		{"Limits.Topic", c.Limits.Topic, maxTopicName},
		{"Limits.Key", c.Limits.Key, maxText},
		{"Limits.Body", c.Limits.Body, 1<<32 - 1},
		{"Limits.Headers", c.Limits.Headers, 1<<32 - 1},
		{"ChunkRows", c.ChunkRows, maxChunkRows},
		{"ChunkBytes", c.ChunkBytes, 1 << 30},
	} {
		if bound.value < 0 || bound.value > bound.max {
			errs = append(errs, fmt.Errorf("%s is %d and may be 0 (the default) to %d", bound.name, bound.value, bound.max))
		}
	}
	if c.Columns != (Columns{}) {
		for _, column := range []struct{ field, name string }{
			{"ID", c.Columns.ID},
			{"MsgID", c.Columns.MsgID},
			{"Topic", c.Columns.Topic},
			{"Content", c.Columns.Content},
			{"Status", c.Columns.Status},
			{"RetryCount", c.Columns.RetryCount},
			{"NextRetryTime", c.Columns.NextRetryTime},
			{"CreateTime", c.Columns.CreateTime},
			{"UpdateTime", c.Columns.UpdateTime},
		} {
			if column.name == "" {
				errs = append(errs, fmt.Errorf("%s is empty; begin with DefaultColumns()", "Columns."+column.field))
			}
		}
	}
	if c.Table.Name == "" && c.Table.Database != "" {
		errs = append(errs, errors.New("Table.Name is empty and Table.Database is not; name the table"))
	}
	return errors.Join(errs...)
}

// core is what a Box knows from its configuration. It does not change.
type core struct {
	cfg        Config
	limits     Limits
	statements [variants]string
}

func newCore(cfg Config) *core {
	if cfg.Table.Name == "" {
		cfg.Table.Name = defaultTable
	}
	if cfg.Columns == (Columns{}) {
		cfg.Columns = DefaultColumns()
	}
	if cfg.ChunkRows == 0 {
		cfg.ChunkRows = defaultChunkRows
	}
	if cfg.ChunkBytes == 0 {
		cfg.ChunkBytes = defaultChunkBytes
	}
	c := &core{cfg: cfg, limits: cfg.Limits.orDefault()}
	for v := range variants {
		c.statements[v] = c.statement(v)
	}
	return c
}

// Box writes messages to one local message table. It may be used from many goroutines; a process needs one for each table. It
// holds no connection: each call works in the transaction that it is given.
type Box struct {
	*core
	ids       sequence
	known     atomic.Pointer[shape]
	unlearned bool // never asks for the table's columns
}

var _ Putter = (*Box)(nil)

// New returns a Box, or everything that is wrong with its configuration.
func New(cfg Config) (*Box, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	return &Box{core: newCore(cfg)}, nil
}

// standard is the core of Put and PutAll. It does not change.
var standard = newCore(Config{})

// Put writes one message to local_message within the caller's transaction, as a Box of the zero Config does, but that it
// remembers nothing: it takes the optional columns that the message needs for granted, where the database's own error tells that one
// is missing, and orders the ids that it makes by the clock alone, to 244 ns.
func Put(ctx context.Context, tx Execer, m Message) (Receipt, error) {
	return (&Box{core: standard, unlearned: true}).Put(ctx, tx, m)
}

// PutAll writes several messages as Put writes one. See Box.PutAll.
func PutAll(ctx context.Context, tx Execer, messages []Message) ([]Receipt, error) {
	return (&Box{core: standard, unlearned: true}).PutAll(ctx, tx, messages)
}

// Put writes one message within the caller's transaction, in one round trip: it is sent when the transaction commits, and never
// existed when it rolls back. Everything that can be wrong with the message is found before anything is sent to the
// database (ErrInvalid, ErrNoColumn). On any error the caller should roll back.
func (b *Box) Put(ctx context.Context, tx Execer, m Message) (Receipt, error) {
	receipt, err := b.put(ctx, tx, &m)
	if err != nil {
		return Receipt{}, fmt.Errorf("put message %s: %w", subject(&m), err)
	}
	return receipt, nil
}

func (b *Box) put(ctx context.Context, tx Execer, m *Message) (Receipt, error) {
	if err := b.CheckTx(tx); err != nil {
		return Receipt{}, err
	}
	d, err := b.draft(ctx, m)
	if err != nil {
		return Receipt{}, err
	}
	s, err := b.shape(ctx, tx, d.wants)
	if err != nil {
		return Receipt{}, err
	}
	if err := b.fit(&d, s); err != nil {
		return Receipt{}, err
	}
	return b.write(ctx, tx, &d)
}

// write inserts one row.
func (b *Box) write(ctx context.Context, tx Execer, d *draft) (Receipt, error) {
	args := d.args(make([]any, 0, maxArgs), d.wants)
	if d.wants&once != 0 {
		args = append(args, d.id)
	}
	result, err := tx.ExecContext(ctx, b.statements[d.wants], args...)
	if err != nil {
		b.known.Store(nil) // a column may be gone
		return Receipt{}, err
	}
	if d.wants&once == 0 {
		return Receipt{ID: d.id}, nil
	}
	duplicate, err := repeated(result)
	return Receipt{ID: d.id, Duplicate: duplicate}, err
}

// repeated tells whether the row was there already; see onDuplicate.
func repeated(result sql.Result) (bool, error) {
	id, err := result.LastInsertId()
	if err != nil {
		return false, fmt.Errorf("was it a duplicate? %w", err)
	}
	switch id {
	case markDuplicate:
		return true, nil
	case markConflict:
		return false, ErrConflict
	}
	return false, nil
}

// Row returns the row that Put would write, without a database: the message is checked and encoded in the same way, for
// a table that has all optional columns. NextRetry is in UTC.
func (b *Box) Row(ctx context.Context, m Message) (Row, error) {
	d, err := b.draft(ctx, &m)
	if err == nil {
		err = b.fit(&d, &shape{key: true, headers: true, trace: true})
	}
	if err != nil {
		return Row{}, fmt.Errorf("message %s: %w", subject(&m), err)
	}
	row := Row{
		Table: b.cfg.Table, MsgID: d.id, Topic: d.topic, Content: []byte(d.content), TraceParent: d.trace,
		Status: Pending, NextRetry: d.due,
	}
	if d.key != "" {
		row.Key = []byte(d.key)
	}
	if d.headers != "" {
		row.Headers = []byte(d.headers)
	}
	return row, nil
}

// now is the clock of ids and of the question whether a time has passed.
func (b *Box) now() time.Time { return time.Now() }
