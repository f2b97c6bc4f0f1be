// Package history is the SQL of archiving: rows are found, moved to the history of their table, looked up there, and brought back.
//
// It guarantees that a move is one transaction, so that a row is in exactly one of the two tables; that only rows of the
// configured statuses and age go, whatever the caller names; that a history takes every value as it is, or nothing is moved
// (ErrHistory); and that no INSERT of a service waits for it. When rows are moved, and how many, is package archive's.
package history

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Config says which rows go to which history. It is the store.Companion that makes and checks histories.
type Config struct {
	// Enabled tells that rows are archived. Without it what was archived before can still be found and resent.
	Enabled bool
	// Table names the history of a table, such as "{table}_history"; it is in the same database. "" means just that.
	Table string
	// Statuses are sent, consumed, or both: rows of any other are never moved. None means consumed.
	Statuses []outbox.Status
	// After is how long ago a row was changed last, at least. Zero means a week.
	After time.Duration
}

func (c Config) withDefaults() Config {
	if c.Table == "" {
		c.Table = "{table}_history"
	}
	if len(c.Statuses) == 0 {
		c.Statuses = []outbox.Status{outbox.Consumed}
	}
	if c.After <= 0 {
		c.After = 168 * time.Hour
	}
	return c
}

func (c Config) validate() error {
	for _, status := range c.Statuses {
		if status != outbox.Sent && status != outbox.Consumed {
			return fmt.Errorf("archive statuses: %s messages are never archived, only sent and consumed ones", status)
		}
	}
	return nil
}

// of returns the history of a table.
func (c Config) of(table outbox.Table) outbox.Table {
	return outbox.HistoryName(c.withDefaults().Table, table)
}

// ErrHistory is a history table that can't take the rows as they are. Nothing was moved; a person has to change the table.
var ErrHistory = errors.New("history table can't take the rows")

// archiveSQL makes the session strict: a value that the history can't hold is an error and never cut. Zero dates stay
// what they are, and so does an id of 0.
const archiveSQL = "SET SESSION sql_mode='STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', sql_quote_show_create=1"

// Histories are the histories of a store's tables. The methods may be called concurrently.
type Histories struct {
	store *store.Store
	cfg   Config
	log   zerolog.Logger
	pool  *mysql.Pool // moves rows, one session

	mu sync.RWMutex
	// copiedTo is what Move has found out about each history.
	copiedTo map[outbox.Table]copiedColumns
}

// New returns the histories of the tables of rows, which it uses until rows is closed. It connects only when it is used.
func New(rows *store.Store, cfg Config, log zerolog.Logger) (*Histories, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	pool, err := rows.NewPool(mysql.Options{Size: 1, ReadTimeout: mysql.SlowRead, SmallImages: true, Setup: []string{archiveSQL}})
	if err != nil {
		return nil, err
	}
	return &Histories{
		store: rows, cfg: cfg, log: log.With().Str("component", "archive").Logger(), pool: pool,
		copiedTo: map[outbox.Table]copiedColumns{},
	}, nil
}

// Tables returns the message tables as they were found last.
func (hs *Histories) Tables() []outbox.Table {
	tables := hs.store.Tables()
	names := make([]outbox.Table, len(tables))
	for i := range tables {
		names[i] = tables[i].Table
	}
	return names
}
