package canal

// Observer is told what the reader can't return. Its methods must not block; they are called from Next's goroutine.
type Observer interface {
	// Reconnect: the connection was lost for the reason, one of a few fixed words, and is being replaced.
	Reconnect(reason string)
}

// NopObserver ignores everything.
type NopObserver struct{}

// Reconnect does nothing.
func (NopObserver) Reconnect(string) {}

// Why rows are left to the sweeper: the keys of Transaction.Missed.
const (
	MissedStatement = "statement" // a statement-format write named the table
	MissedXA        = "xa"        // an XA transaction was committed; it counts as one, however many rows it has
	MissedColumns   = "columns"   // the row's columns could not be told with certainty
	MissedGone      = "gone"      // the table, or a column that is needed, does not exist any more
	MissedDecode    = "decode"    // a column's type or content is beyond the decoder
	MissedIncident  = "incident"  // the server noted that events are missing from its binlog
	MissedLarge     = "large"     // the transaction changed more of its own rows than fit the buffer, or the spill file failed
)
