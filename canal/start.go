package canal

import "example.com/outbox-relay/canal/position"

// Start says where to stream from.
type Start struct {
	// Position is where to stream from, on the server as it is now.
	Position position.Position
	// Recovery is one of the Recovery words.
	Recovery string
	// Detail says what was found, for an operator.
	Detail string
	// Usable tells whether the saved position is honoured. When not, Position is the server's present end, and everything
	// pending is the sweeper's.
	Usable bool

	// lagging: the verdict may be another one in a moment, see decided.
	lagging bool
}

// What became of the saved position.
const (
	RecoveryResumed     = "resumed"      // it is honoured
	RecoveryMoved       = "moved"        // it is honoured, on another server: its GTIDs told the place there
	RecoveryNone        = "none"         // there was none
	RecoveryPurged      = "purged"       // its binlog files are gone
	RecoveryOtherServer = "other-server" // another server, and no GTIDs by which to find the place
	RecoveryInvalid     = "invalid"      // it does not exist on this server: its history was reset or rewritten
)

// Where to start when no position was saved.
const (
	StartNow      = "now"
	StartEarliest = "earliest"
)
