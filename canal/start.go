package canal

import "example.com/outbox-relay/canal/position"

// Start says where to stream from.
type Start struct {
	// Position is where to stream from, on the server as it is now.
	Position position.Position
	// Recovery is one of words.Recovery*: what became of the saved position.
	Recovery string
	// Detail says what was found, for an operator.
	Detail string
	// Usable tells whether the saved position is honoured. When not, Position is the server's present end, and everything
	// pending is the sweeper's.
	Usable bool

	// lagging: the verdict may be another one in a moment, see decided.
	lagging bool
}

// Where to start when no position was saved.
const (
	StartNow      = "now"
	StartEarliest = "earliest"
)
