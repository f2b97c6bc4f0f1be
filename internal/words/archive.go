package words

// What came of rows that were old enough to archive: the results of archive_rows_total.
const (
	ArchiveMoved      = "moved"       // to the history
	ArchivePassedOver = "passed_over" // locked, or changed since they were found: a later pass takes them
)

// ArchiveRows returns the results.
func ArchiveRows() []string { return []string{ArchiveMoved, ArchivePassedOver} }

// Why archiving waits: the reasons of archive_paused.
const (
	PausedReplica = "replica" // a replica is behind
	PausedBusy    = "busy"    // the database is busy with others
	PausedError   = "error"   // the last pass failed, the log says why
)

// Pauses returns the reasons.
func Pauses() []string { return []string{PausedReplica, PausedBusy, PausedError} }
