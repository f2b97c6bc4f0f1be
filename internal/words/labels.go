package words

// TransactionCommitted is the one outcome of transactions_total: what was rolled back is not counted.
const TransactionCommitted = "committed"

// Who sent a message: the origins of messages_published_total.
const (
	OriginStream = "stream" // read from the binlog
	OriginSweep  = "sweep"  // sent by the sweeper
	OriginReplay = "replay" // read from the binlog again, inside the replay window
)

// Origins returns them.
func Origins() []string { return []string{OriginStream, OriginSweep, OriginReplay} }

// By what a message of the replay window was known to be sent: duplicates_suppressed_total.
const (
	SuppressedByStatus = "status" // the row was already past pending
	SuppressedByTail   = "tail"   // its msg_id was found at the end of the Kafka partition
)

// Suppressed returns them.
func Suppressed() []string { return []string{SuppressedByStatus, SuppressedByTail} }

// How saving the checkpoint went: the results of checkpoint_saves_total.
const (
	SaveOK     = "ok"
	SaveFailed = "failed" // Redis did not take it: tried again
	SaveFenced = "fenced" // a newer leader has taken over
)

// Saves returns the results.
func Saves() []string { return []string{SaveOK, SaveFailed, SaveFenced} }

// How a round of the sweeper went: the results of sweep_rounds_total.
const (
	RoundDone    = "done"
	RoundSkipped = "skipped" // the stream had not yet passed what was pending
	RoundFailed  = "failed"  // the database or Kafka did not answer
)

// Rounds returns the results.
func Rounds() []string { return []string{RoundDone, RoundSkipped, RoundFailed} }

// What became of rows that the sweeper took up: the results of sweep_rows_total.
const (
	SweptRowSent     = "sent"
	SweptRowFailed   = "failed"
	SweptRowDead     = "dead"
	SweptRowReleased = "released" // given back without being tried
	SweptRowParked   = "parked"   // left to wait behind a dead letter of their key
)

// SweptRows returns the results.
func SweptRows() []string {
	return []string{SweptRowSent, SweptRowFailed, SweptRowDead, SweptRowReleased, SweptRowParked}
}

// Why a message was the sweeper's own to send: the reasons of sweep_sent_total.
const (
	SweptRetry    = "retry"    // a failed row whose time has come
	SweptDeferred = "deferred" // given to the sweeper: its topic was closed, or the position was lost
	SweptDelayed  = "delayed"  // a next_retry_time of its own, or a claim that was given back or not finished
)

// Swept returns the reasons.
func Swept() []string { return []string{SweptRetry, SweptDeferred, SweptDelayed} }
