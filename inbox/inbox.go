package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
)

// Config says whose messages an Inbox remembers, and where.
type Config struct {
	// Group names the consumer whose effects are to happen once; it is half of the primary key. Take the name of the
	// Kafka consumer group, and never change it without thinking (see the package's comment).
	Group string
	// Table is consumed_message by default; database.table where it is not in the connection's own database.
	Table string
	// Tries is how often Do begins a transaction that ends in a deadlock or a lock wait. Default 5.
	Tries int
	// Tx are the options of Do's transactions; nil takes the server's isolation level and costs no round trip.
	Tx *sql.TxOptions
	// Number finds MySQL's error number in a driver's error. Default NumberOf, which knows go-sql-driver's.
	Number func(error) uint16
	// Outbox is where Emit writes; nil where nothing is emitted.
	Outbox Outbox
}

// Inbox remembers which messages a consumer group has handled, in the database in which the handlers do their work.
// It may be used from many goroutines.
type Inbox struct {
	db         *sql.DB
	group      string
	table      string
	insertHead string
	tries      int
	tx         *sql.TxOptions
	number     func(error) uint16
	outbox     Outbox
}

const (
	defaultTable = "consumed_message"
	defaultTries = 5
)

// The pause between tries: long enough to let the other transaction finish, short beside a lock wait.
const (
	pauseLeast = 2 * time.Millisecond
	pauseMost  = 200 * time.Millisecond
)

// New returns the inbox of one consumer group over the pool in which its handlers work. It asks the server nothing.
func New(db *sql.DB, cfg Config) (*Inbox, error) {
	if err := cfg.validate(db); err != nil {
		return nil, fmt.Errorf("inbox: %w", err)
	}
	in := &Inbox{db: db, group: cfg.Group, table: cfg.Table, tries: cfg.Tries, tx: cfg.Tx, number: cfg.Number, outbox: cfg.Outbox}
	if in.table == "" {
		in.table = defaultTable
	}
	if in.tries == 0 {
		in.tries = defaultTries
	}
	if in.number == nil {
		in.number = NumberOf
	}
	in.insertHead = "INSERT INTO " + quoteTable(in.table) +
		" (consumer_group, msg_id, topic, partition_no, record_offset, consumed_at) VALUES (" + literal(in.group) + ", "
	return in, nil
}

func (c *Config) validate(db *sql.DB) error {
	var errs []error
	if db == nil {
		errs = append(errs, errors.New("no database: give the pool in which the handlers work"))
	}
	if c.Group == "" {
		errs = append(errs, errors.New("group is empty: give the consumer group's name"))
	}
	if !utf8.ValidString(c.Group) || utf8.RuneCountInString(c.Group) > maxGroup || strings.HasSuffix(c.Group, " ") {
		errs = append(errs, fmt.Errorf("group %q: it must be UTF-8 of at most %d characters and not end with a space", c.Group, maxGroup))
	}
	if strings.Count(c.Table, ".") > 1 || strings.HasPrefix(c.Table, ".") || strings.HasSuffix(c.Table, ".") {
		errs = append(errs, fmt.Errorf("table %q is neither a name nor database.name", c.Table))
	}
	if c.Tries < 0 {
		errs = append(errs, fmt.Errorf("tries is %d: it must be at least 1, or 0 for %d", c.Tries, defaultTries))
	}
	if c.Tx != nil && c.Tx.ReadOnly {
		errs = append(errs, errors.New("tx is read-only: the record is written in it"))
	}
	return errors.Join(errs...)
}

// Group returns the consumer group's name.
func (in *Inbox) Group() string { return in.group }

// Do handles one delivery at most once. It begins a transaction, records the message in it, calls the handler with the
// transaction, and commits both. If the record is there already the handler does not run and the result is Duplicate; if
// another transaction is handling the same message, Do waits for its end first.
//
// The handler does its work in tx and returns every error of its statements; it neither commits nor rolls back. When it
// returns an error, everything is rolled back, the record too, and the error comes back with %w. When it panics,
// everything is rolled back and the panic goes on.
//
// A deadlock or a lock wait, of the record or in the handler, starts the whole transaction anew up to Config.Tries
// times, so the handler may be called more than once; only one call is committed. A handler that swallows a deadlock's
// error breaks this promise, because the server has then rolled back the record as well and the statements that follow
// are on their own.
//
// ErrUnknown is the one error after which the work may have been done: deliver the message again and the record tells.
func (in *Inbox) Do(ctx context.Context, d Delivery, handler func(ctx context.Context, tx *sql.Tx) error) (Result, error) {
	if err := checkID(d.ID); err != nil {
		return None, err
	}
	pause := retry.Doubling(pauseLeast, pauseMost).Attempts()
	for try := 1; ; try++ {
		result, err := in.once(ctx, &d, handler)
		if err == nil || try >= in.tries || !in.again(err) {
			return result, err
		}
		if retry.Wait(ctx, pause.Next()) != nil {
			return None, err
		}
	}
}

// again reports whether the transaction is to be begun anew at once. A handler that has said itself when, or never,
// is left to its word.
func (in *Inbox) again(err error) bool {
	if _, ok := RetryDelay(err); ok || IsPermanent(err) {
		return false
	}
	return blocked(in.number(err)) && !errors.Is(err, ErrUnknown)
}

func (in *Inbox) once(ctx context.Context, d *Delivery, handler func(ctx context.Context, tx *sql.Tx) error) (Result, error) {
	tx, err := in.db.BeginTx(ctx, in.tx)
	if err != nil {
		return None, in.failed(ctx, "begin the transaction of message "+d.ID, err)
	}
	ended := false
	defer func() {
		if !ended { // the handler panics: nothing of it may stay, and its panic is not ours to stop
			_ = tx.Rollback()
		}
	}()
	first, err := in.record(ctx, tx, d)
	if err != nil || !first {
		ended = true
		// Nothing was written, so it makes no difference whether the rollback reached the server.
		_ = tx.Rollback()
		if err != nil {
			return None, err
		}
		return Duplicate, nil
	}
	err = handler(in.Caused(ctx, d.ID), tx)
	ended = true
	if err != nil {
		return None, in.undo(tx, d, err)
	}
	return in.commit(ctx, tx, d)
}

// undo rolls back after the handler's error. A connection on which not even that succeeds was lost under the handler, so
// its error says nothing about the message.
func (in *Inbox) undo(tx *sql.Tx, d *Delivery, cause error) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return &Error{Op: "handle message " + d.ID + ": connection lost", kinds: []error{ErrUnavailable}, cause: cause}
	}
	return fmt.Errorf("handle message %s: %w", d.ID, cause)
}

// commit makes the handler's work and the record durable together.
func (in *Inbox) commit(ctx context.Context, tx *sql.Tx, d *Delivery) (Result, error) {
	err := tx.Commit()
	op := "commit message " + d.ID
	switch {
	case err == nil:
		return Handled, nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// database/sql saw the ended context before it sent anything.
		return None, fmt.Errorf("%s: %w", op, err)
	case errors.Is(err, sql.ErrTxDone):
		if ended := ctx.Err(); ended != nil {
			return None, fmt.Errorf("%s: %w", op, ended)
		}
		return None, &Error{Op: op, kinds: []error{ErrTxEnded}, cause: err}
	case blocked(in.number(err)):
		// A cluster that certifies at the commit (Galera, group replication) has rolled it back.
		return None, in.failed(ctx, op, err)
	}
	return None, &Error{Op: op, Number: in.number(err), kinds: []error{ErrUnknown}, cause: err}
}

func quoteTable(table string) string {
	database, name, found := strings.Cut(table, ".")
	if !found {
		database, name = "", table
	}
	return outbox.QuoteTable(outbox.Table{Database: database, Name: name})
}
