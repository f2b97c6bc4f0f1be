package demo

import (
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/outbox-relay/internal/demo/consume"
	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
)

// Topics are where the demo's messages go unless others are named.
func Topics() []string { return []string{"demo-orders", "demo-payments", "demo-stock"} }

// Config says what to write and where to look for it.
type Config struct {
	// Transactions end the run; a tenth of them is rolled back.
	Transactions int
	Writers      int
	// Rate is the transactions a second of all writers together; zero is full speed.
	Rate   float64
	Topics []string
	// Table is written to. It must have the pattern's columns under their own names.
	Table outbox.Table
	// KeyColumn and Headers say which of the optional columns the table has.
	KeyColumn, Headers bool
	// Source is what the relay's records must name as theirs.
	Source string
	// Router is how the relay routes; the demo must know what to expect.
	Router *router.Router
	// DB writes: it needs INSERT and SELECT on the table, and CREATE, INSERT and DROP on its database.
	DB      *sql.DB
	Brokers Brokers
	// Patience is how long nothing may move before the demo gives up and judges what is there.
	Patience time.Duration
}

// Brokers says how to reach the brokers and how to log in.
type Brokers struct {
	Addresses []string
	TLS       *tls.Config // nil for none
	// Mechanism is plain, scram-sha-256, scram-sha-512, oauthbearer or "" for none; for oauthbearer the password is the
	// token.
	Mechanism, User, Password, TokenFile string
}

func (b *Brokers) consumer(topics []string, prefix string) consume.Config {
	return consume.Config{
		Brokers: b.Addresses, Topics: topics, Prefix: prefix, TLS: b.TLS,
		Login: consume.Login{Mechanism: b.Mechanism, User: b.User, Password: b.Password, TokenFile: b.TokenFile},
	}
}

// Validate names everything that is wrong.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Transactions > 0, "transactions: %d, must be at least 1", c.Transactions)
	check(c.Writers > 0 && c.Writers <= maxWriters, "writers: %d, must be from 1 to %d", c.Writers, maxWriters)
	check(c.Rate >= 0, "rate: %g, must be 0 (full speed) or more", c.Rate)
	check(len(c.Topics) > 0, "topics: name at least one")
	check(c.Patience > 0, "patience: %s, must be above zero", c.Patience)
	return errors.Join(errs...)
}

const (
	maxWriters = 256
	meanRows   = 2 // of a transaction: from 1 to 3
)

// workload returns the demo's mixture.
func (c *Config) workload(run string, key workload.KeySource) workload.Config {
	w := workload.Default([]string{c.Table.String()}, c.Topics)
	w.Orders = c.Table.Database + "." + "outbox_relay_demo_" + run
	w.Prefix = "demo-" + run
	w.Writers, w.Transactions, w.Rate = c.Writers, c.Transactions, c.Rate*meanRows
	w.MinTxn, w.MaxTxn, w.Batch = 1, 2*meanRows-1, 2
	w.MaxBytes = 2000
	w.Key = key
	if !c.Headers {
		w.Headers = 0
	}
	return w
}

// ErrUnforeseen is returned when the relay is configured to route the demo's messages in a way that the demo does not
// know: to another topic, or by a key that it does not write.
var ErrUnforeseen = errors.New("the configuration routes the demo's messages in a way that the demo can't foresee")

// sample is a content with every field that workload writes.
const sample = `{"order_id":"content","message":"m","amount":1,"note":"n","padding":"p"}`

// keySource finds out, by asking the router, where the relay takes the key of the demo's messages from.
func (c *Config) keySource() (workload.KeySource, error) {
	found := make([]workload.KeySource, 0, len(c.Topics))
	for _, topic := range c.Topics {
		row := outbox.Row{Table: c.Table, MsgID: "id", Topic: topic, Content: []byte(sample)}
		if c.KeyColumn {
			row.Key = []byte("column")
		}
		rec, err := c.Router.Route(&row, "")
		if err != nil {
			return 0, fmt.Errorf("%w: topic %s is refused: %w; name others with --topics", ErrUnforeseen, topic, err)
		}
		if rec.Topic != topic {
			return 0, fmt.Errorf("%w: router.routes sends %s to %s; name other topics with --topics", ErrUnforeseen, topic, rec.Topic)
		}
		switch string(rec.Key) {
		case "column":
			found = append(found, workload.KeyColumn)
		case "content":
			found = append(found, workload.KeyContent)
		case "id":
			found = append(found, workload.NoKey)
		default:
			return 0, fmt.Errorf("%w: the key of %s comes from elsewhere; set router.key to /order_id for it, or name others with --topics", ErrUnforeseen, topic)
		}
	}
	if len(slices.Compact(slices.Clone(found))) > 1 {
		return 0, fmt.Errorf("%w: the topics' keys come from different places; name others with --topics", ErrUnforeseen)
	}
	return found[0], nil
}
