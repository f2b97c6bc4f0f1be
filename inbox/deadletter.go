package inbox

// The headers that a loop adds to a dead letter. Key, value and the message's own headers stay as they were, so writing the
// record to the topic that HeaderDeadTopic names delivers it again. Nothing of it is in the table: a dead letter was not handled.
const (
	HeaderDeadTopic     = "inbox_topic"     // where the message came from
	HeaderDeadPartition = "inbox_partition" // its partition there
	HeaderDeadOffset    = "inbox_offset"    // its offset there
	HeaderDeadGroup     = "inbox_group"     // the consumer group that could not handle it
	HeaderDeadReason    = "inbox_reason"    // a Reason constant
	HeaderDeadError     = "inbox_error"     // Policy.Describe of the last error
	HeaderDeadAttempts  = "inbox_attempts"  // how many times the handler failed
	HeaderDeadTime      = "inbox_time"      // when it was given up, in RFC 3339
)

// DeadPrefix begins the names of a dead letter's added headers.
const DeadPrefix = "inbox_"
