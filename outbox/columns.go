package outbox

import (
	"context"
	"fmt"
	"strings"
)

// shape is what a Box knows about its table.
type shape struct {
	key, headers, trace, bodyRef bool // has the optional column
	// timestamp says that next_retry_time is a TIMESTAMP, which the server converts from the session's time zone, and no DATETIME.
	timestamp bool
}

// Optional returns the names of the columns as the Box will use them: those that the table lacks are "", and so is LastError, which
// is the relay's.
func (b *Box) Optional(ctx context.Context, tx Queryer) (Columns, error) {
	s, err := b.learn(ctx, tx)
	if err != nil {
		return Columns{}, err
	}
	c := b.cfg.Columns
	c.LastError = ""
	if !s.key {
		c.Key = ""
	}
	if !s.headers {
		c.Headers = ""
	}
	if !s.trace {
		c.Trace = ""
	}
	if !s.bodyRef {
		c.BodyRef = ""
	}
	return c, nil
}

// learn asks the server for the table's columns: an empty result has their names and types, reads nothing, locks nothing and fixes
// no snapshot.
func (b *Box) learn(ctx context.Context, tx Queryer) (*shape, error) {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+QuoteTable(b.cfg.Table)+" LIMIT 0")
	if err != nil {
		return nil, fmt.Errorf("look at the columns of %s: %w", b.cfg.Table.Name, err)
	}
	defer rows.Close() //nolint:errcheck // the result is empty, and its error is read below
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, fmt.Errorf("look at the columns of %s: %w", b.cfg.Table.Name, err)
	}
	var s shape
	for _, column := range types {
		is := func(name string) bool { return name != "" && strings.EqualFold(column.Name(), name) }
		s.key = s.key || is(b.cfg.Columns.Key)
		s.headers = s.headers || is(b.cfg.Columns.Headers)
		s.trace = s.trace || is(b.cfg.Columns.Trace)
		s.bodyRef = s.bodyRef || is(b.cfg.Columns.BodyRef)
		if is(b.cfg.Columns.NextRetryTime) {
			s.timestamp = column.DatabaseTypeName() == "TIMESTAMP"
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look at the columns of %s: %w", b.cfg.Table.Name, err)
	}
	b.known.Store(&s)
	return &s, nil
}

// shape returns what the table has, as far as it matters for what is wanted. Only the first call asks the server, and one that
// needs a column that was not there: it may have been added since. A new column for the trace alone is noticed at the next start.
func (b *Box) shape(ctx context.Context, tx Execer, wants variant) (*shape, error) {
	known := b.known.Load()
	if known != nil && known.serves(wants) {
		return known, nil
	}
	queryer, ok := tx.(Queryer)
	if !ok || b.unlearned {
		// Nobody can be asked. A missing column fails the statement; the trace alone is not worth that.
		return &shape{key: b.cfg.Columns.Key != "", headers: b.cfg.Columns.Headers != "", bodyRef: b.cfg.Columns.BodyRef != ""}, nil
	}
	return b.learn(ctx, queryer)
}

// serves reports whether the table has what must not be left out.
func (s *shape) serves(wants variant) bool {
	return (s.key || wants&withKey == 0) && (s.headers || wants&withHeaders == 0) && (s.bodyRef || wants&withBodyRef == 0)
}

// missing names the column that a message needs and the table lacks.
func (b *Box) missing(s *shape, wants variant) error {
	lacks := func(what, name, standard, sqlType string) error {
		if name == "" {
			name = standard
		}
		return fmt.Errorf("the message has %s and %s no column %s; leave it out, or ALTER TABLE %s ADD COLUMN %s %s NULL: %w",
			what, b.cfg.Table.Name, name, QuoteTable(b.cfg.Table), quote(name), sqlType, ErrNoColumn)
	}
	switch {
	case wants&withKey != 0 && !s.key:
		return lacks("a Key", b.cfg.Columns.Key, DefaultColumns().Key, "VARCHAR(255)")
	case wants&withHeaders != 0 && !s.headers:
		return lacks("Headers", b.cfg.Columns.Headers, DefaultColumns().Headers, "TEXT")
	case wants&withBodyRef != 0 && !s.bodyRef:
		return lacks("a staged Body", b.cfg.Columns.BodyRef, DefaultColumns().BodyRef, bodyRefType)
	}
	return nil
}
