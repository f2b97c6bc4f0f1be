package words

// What became of the saved position, or what else the relay got over: the kinds of recoveries_total. docs/RECOVERY.md says
// what each does.
const (
	RecoveryResumed     = "resumed"      // the position is honoured: no recovery, but what a start costs is kept under this kind
	RecoveryMoved       = "moved"        // it is honoured, on another server: its GTIDs told the place there
	RecoveryNone        = "none"         // there was none
	RecoveryLost        = "lost"         // there was one, and its key in Redis is gone
	RecoveryBroken      = "broken"       // the record in Redis is nonsense
	RecoveryPurged      = "purged"       // its binlog files are gone
	RecoveryOtherServer = "other-server" // another server, and no GTIDs by which to find the place
	RecoveryInvalid     = "invalid"      // it does not exist on this server: its history was reset or rewritten
	RecoveryTableGone   = "table-gone"   // rows of a table that was dropped or renamed away could not be marked
	RecoveryColumns     = "columns"      // rows whose columns could not be told with certainty were left to the sweeper
	RecoveryGone        = "gone"         // rows were left to the sweeper whose table, or a needed column of it, did not exist any more
	RecoveryMetadata    = "metadata"     // the server did not tell a table's columns, and the stream waited
)

// Recoveries returns the kinds, without RecoveryResumed.
func Recoveries() []string {
	return []string{
		RecoveryMoved, RecoveryNone, RecoveryLost, RecoveryBroken, RecoveryPurged, RecoveryOtherServer, RecoveryInvalid,
		RecoveryTableGone, RecoveryColumns, RecoveryGone, RecoveryMetadata,
	}
}

// What a recovery cost, in rows: the outcomes of recovery_rows.
const (
	RowsReadAgain     = "read_again"      // in the replay window
	RowsAlreadySent   = "already_sent"    // of those, the table said that they were
	RowsInKafka       = "found_in_kafka"  // of those, Kafka's tail had them
	RowsLeftToSweeper = "left_to_sweeper" // recorded in the table as the sweeper's
	RowsHeld          = "held"            // marked only once their table was back
)

// RecoveryRows returns the outcomes.
func RecoveryRows() []string {
	return []string{RowsReadAgain, RowsAlreadySent, RowsInKafka, RowsLeftToSweeper, RowsHeld}
}
