package rewind

import (
	"context"
	"errors"
	"fmt"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Stream is the binlog from the beginning of the stretch on; canal.Reader is the real one.
type Stream interface {
	Next(ctx context.Context) (*assemble.Transaction, error)
}

// Rows answers how rows stand; store.Store is the real one.
type Rows interface {
	Lookup(ctx context.Context, refs []outbox.Ref) (map[outbox.Ref]store.Found, error)
}

// Count is what a stretch of the binlog holds.
type Count struct {
	// Rows is how many rows its transactions left pending; the other numbers divide them by how they stand now.
	Rows int64
	// Settled ones have been sent, consumed, given up or discarded: a stream that comes again skips them.
	Settled int64
	// Open ones are still pending or failed.
	Open int64
	// Gone ones are not in the table any more. A stream that comes again sends them again.
	Gone int64
	// Missed ones can't be read from the binlog with certainty, so the stream leaves them to the sweeper. They are not among
	// Rows.
	Missed int64
	// Complete says that the whole stretch was read; Stopped is how far it was.
	Complete bool
	Stopped  position.End
}

// lookupBatch is how many rows the table is asked about at once.
const lookupBatch = 1000

// Read counts from where the stream begins to a place of the binlog. When patience ends first, it returns what it has.
// An error means that the stretch can't be read or the table not be asked.
func Read(ctx, patience context.Context, stream Stream, rows Rows, until position.Position) (Count, error) {
	c := counter{rows: rows}
	for {
		txn, err := stream.Next(patience)
		if err != nil && patience.Err() != nil && ctx.Err() == nil {
			return c.count, c.look(ctx)
		}
		if err != nil {
			return c.count, fmt.Errorf("read the binlog: %w", err)
		}
		done, err := c.take(ctx, txn, until)
		if err != nil {
			return c.count, err
		}
		if done {
			c.count.Complete = true
			return c.count, c.look(ctx)
		}
	}
}

type counter struct {
	rows  Rows
	refs  []outbox.Ref
	count Count
}

// take counts one transaction and reports whether the stretch is over. One that begins behind its end is not counted.
func (c *counter) take(ctx context.Context, txn *assemble.Transaction, until position.Position) (done bool, err error) {
	defer func() { err = errors.Join(err, txn.Close()) }()
	order, err := position.Compare(txn.End.File, txn.End.Pos, until.File, until.Pos)
	if err != nil {
		return false, fmt.Errorf("compare %s with %s: %w", txn.End, until, err)
	}
	if order > 0 {
		return true, nil
	}
	for _, n := range txn.Missed {
		c.count.Missed += int64(n)
	}
	for row, err := range txn.Rows() {
		if err != nil {
			return false, fmt.Errorf("read the transaction at %s: %w", txn.End, err)
		}
		c.count.Rows++
		c.refs = append(c.refs, row.Ref())
		if len(c.refs) >= lookupBatch {
			if err := c.look(ctx); err != nil {
				return false, err
			}
		}
	}
	c.count.Stopped = txn.End
	return order == 0, nil
}

// look asks how the rows stand that were read since the last call.
func (c *counter) look(ctx context.Context) error {
	if len(c.refs) == 0 {
		return nil
	}
	found, err := c.rows.Lookup(ctx, c.refs)
	if err != nil {
		return fmt.Errorf("look up the rows: %w", err)
	}
	for _, ref := range c.refs {
		row, ok := found[ref]
		switch {
		case !ok:
			c.count.Gone++
		case row.Status == outbox.Pending || row.Status == outbox.Failed:
			c.count.Open++
		default:
			c.count.Settled++
		}
	}
	c.refs = c.refs[:0]
	return nil
}

// Scale estimates the whole of which only a part was read, both in bytes. Nothing can be estimated when nothing was read.
func (c Count) Scale(read, whole uint64) Count {
	if read == 0 || whole <= read {
		return c
	}
	factor := float64(whole) / float64(read)
	scaled := func(n int64) int64 { return int64(float64(n)*factor + 0.5) }
	c.Settled, c.Open, c.Gone, c.Missed = scaled(c.Settled), scaled(c.Open), scaled(c.Gone), scaled(c.Missed)
	c.Rows = c.Settled + c.Open + c.Gone
	return c
}
