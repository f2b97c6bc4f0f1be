package workload

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"example.com/outbox-relay/outbox"
)

// KeySource says where the relay will find a message's key.
type KeySource uint8

// The sources of keys.
const (
	KeyColumn  KeySource = iota // the msg_key column
	KeyContent                  // /order_id of the content: the table needs no msg_key column
	NoKey                       // none: each message's key is its msg_id
)

// Config says what to write. Start from Default; a rate of zero is never, one is always.
type Config struct {
	// Tables are database.table. A key always goes to the same one, as it does in sharded tables.
	Tables []string
	Topics []string
	// Orders is the business table (database.table) that each transaction writes too, "" for none.
	Orders  string
	Writers int
	// Rows ends the run when so many are committed, Transactions when so many have ended, rolled back or committed; with
	// both zero the context ends it.
	Rows, Transactions int
	// MinTxn and MaxTxn bound the rows of a transaction, Batch the rows of one INSERT.
	MinTxn, MaxTxn, Batch int
	// Rollbacks and Savepoints are the parts of transactions that roll back, and that roll back to a savepoint.
	Rollbacks, Savepoints float64
	Key                   KeySource
	// Keys is how many keys each writer owns at a time, Keyless the part of messages that have none.
	Keys    int
	Keyless float64
	// Headers is the part of messages with headers and a trace parent. The table needs the columns.
	Headers float64
	// Staged is the part of messages whose body Stage puts into Kafka. The table needs the column body_ref.
	Staged float64
	Stage  outbox.Stager
	// Delayed is the part of messages that are due later, by up to MaxDelay. They have no key.
	Delayed  float64
	MaxDelay time.Duration
	// MinBytes and MaxBytes bound the content's size.
	MinBytes, MaxBytes int
	// Rate bounds the rows a second of all writers together; zero is full speed.
	Rate float64
	// Prefix starts each msg_id. Two runs on one ledger need different ones. KeyPrefix starts each key; "" is Prefix. A
	// run that should go on with the keys of an earlier one takes that one's.
	Prefix, KeyPrefix string
	Seed              uint64
	// TxnTimeout ends a transaction that hangs; Patience ends the run when no transaction has succeeded for so long.
	TxnTimeout, Patience time.Duration
}

// Default returns a lively mixture of everything but delays, at full speed.
func Default(tables, topics []string) Config {
	orders := ""
	if len(tables) > 0 {
		database, _, _ := strings.Cut(tables[0], ".")
		orders = database + ".orders"
	}
	return Config{
		Tables: tables, Topics: topics, Orders: orders, Writers: 8, MinTxn: 1, MaxTxn: 8, Batch: 4, Rollbacks: 0.1, Savepoints: 0.1,
		Keys: 20, Keyless: 0.2, Headers: 0.2, MaxDelay: 5 * time.Second, MinBytes: 100, MaxBytes: 4000, Prefix: "m", Seed: 1,
		TxnTimeout: 30 * time.Second, Patience: time.Minute,
	}
}

var qualified = regexp.MustCompile(`^[A-Za-z0-9_$]+\.[A-Za-z0-9_$]+$`)

// Validate names everything that is wrong.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(len(c.Tables) > 0, "tables: name at least one")
	check(len(c.Topics) > 0, "topics: name at least one")
	for _, table := range c.Tables {
		check(qualified.MatchString(table), "tables: %q is not database.table", table)
	}
	check(c.Orders == "" || qualified.MatchString(c.Orders), "orders: %q is not database.table", c.Orders)
	check(c.Writers > 0, "writers: %d, must be at least 1", c.Writers)
	check(c.MinTxn > 0 && c.MaxTxn >= c.MinTxn, "txn: from %d to %d, must be 1 or more and in order", c.MinTxn, c.MaxTxn)
	check(c.Batch > 0, "batch: %d, must be at least 1", c.Batch)
	check(c.Key == NoKey || c.Keys > 0, "keys: %d, must be at least 1", c.Keys)
	check(c.MinBytes > 0 && c.MaxBytes >= c.MinBytes, "bytes: from %d to %d, must be 1 or more and in order", c.MinBytes, c.MaxBytes)
	check(c.Delayed == 0 || c.MaxDelay >= time.Second, "max delay: %s, must be 1s or more", c.MaxDelay)
	check(c.Staged == 0 || c.Stage != nil, "stage: must be given")
	check(c.TxnTimeout > 0 && c.Patience > 0, "txn timeout %s and patience %s must be above zero", c.TxnTimeout, c.Patience)
	for name, rate := range map[string]float64{
		"rollbacks": c.Rollbacks, "savepoints": c.Savepoints, "keyless": c.Keyless, "headers": c.Headers, "delayed": c.Delayed, "staged": c.Staged,
	} {
		check(rate >= 0 && rate <= 1, "%s: %g, must be from 0 to 1", name, rate)
	}
	return errors.Join(errs...)
}
