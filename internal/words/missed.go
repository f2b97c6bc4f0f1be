package words

// Why rows that the stream should have brought were left to the sweeper: the reasons of stream_missed_total and
// stream_skipped_total.
const (
	MissedXA          = "xa"          // an XA transaction was committed
	MissedColumns     = "columns"     // the row's columns could not be told with certainty
	MissedGone        = "gone"        // the table, or a column that is needed, does not exist any more
	MissedDecode      = "decode"      // a column's type or content is beyond the decoder
	MissedLarge       = "large"       // the transaction changed more of its own rows than fit the buffer, or the spill file failed
	MissedUpdate      = "update"      // an UPDATE made the row due, by hand or by an upsert
	MissedStatement   = "statement"   // a statement-format write named the table
	MissedDDL         = "ddl"         // a statement brought it: a partition exchanged in, a table renamed
	MissedIncident    = "incident"    // the server noted that events are missing from its binlog
	MissedStart       = "start"       // it was pending when this process began to stream
	MissedUnexplained = "unexplained" // nobody but the table knew of it
)

// Missed returns the reasons, the most certain ones first: a row that several could explain counts under the first.
func Missed() []string {
	return []string{
		MissedXA, MissedColumns, MissedGone, MissedDecode, MissedLarge, MissedUpdate, MissedStatement, MissedDDL, MissedIncident,
		MissedStart, MissedUnexplained,
	}
}

// Skipped returns those of the reasons that the stream itself gives.
func Skipped() []string {
	return []string{
		MissedXA, MissedColumns, MissedGone, MissedDecode, MissedLarge, MissedUpdate, MissedStatement, MissedDDL, MissedIncident,
	}
}
