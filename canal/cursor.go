package canal

import (
	"fmt"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/position"
)

// Cursor adds the Ends of transactions up to a complete position. It is used by one goroutine.
//
// Ends must be handed to it in the order in which they were read, and none may be left out: each carries only the
// GTIDs that were added since the one before.
type Cursor struct {
	pos position.Position
	// set is the complete set of transactions dealt with; nil while it is not known. Then the position has no GTID:
	// a set with holes would make the server send everything again that is missing from it.
	set gtid.Set
}

// NewCursor starts at a position.
func NewCursor(start position.Position) (*Cursor, error) {
	c := &Cursor{pos: start}
	if start.GTID == "" {
		return c, nil
	}
	set, err := gtid.Parse(start.Flavor, start.GTID)
	if err != nil {
		return nil, fmt.Errorf("start at %s: %w", start, err)
	}
	c.set = set
	return c, nil
}

// Advance moves the cursor to the end of a transaction.
func (c *Cursor) Advance(end position.End) error {
	switch {
	case end.Executed != "":
		set, err := gtid.Parse(c.pos.Flavor, end.Executed)
		if err != nil {
			return fmt.Errorf("advance to %s: %w", end, err)
		}
		c.set = set
	case end.GTID != "" && c.set != nil:
		if err := c.set.Add(end.GTID); err != nil {
			return fmt.Errorf("advance to %s: %w", end, err)
		}
	}
	if end.File != "" {
		c.pos.File, c.pos.Pos = end.File, end.Pos
	}
	return nil
}

// Position returns where the cursor is, complete with the GTID set if that is known.
func (c *Cursor) Position() position.Position {
	p := c.pos
	p.GTID = ""
	if c.set != nil {
		p.GTID = c.set.String()
	}
	return p
}
