package words

// Why a message could not be sent: the reasons of messages_failed_total and messages_dead_total.
const (
	// The row itself can't become a record.
	RefusedTopicInvalid    = "topic_invalid"
	RefusedTopicNotAllowed = "topic_not_allowed" // by router.allow
	RefusedHeadersInvalid  = "headers_invalid"
	RefusedHeadersTooLarge = "headers_too_large"
	RefusedContentEmpty    = "content_empty"
	RefusedTooLarge        = "too_large" // for the topic, the brokers or kafka.max_message_bytes
	RefusedMsgIDEmpty      = "msg_id_empty"
	RefusedUnroutable      = "unroutable"   // another refusal of the router
	RefusedBadBodyRef      = "bad_body_ref" // body_ref holds no reference
	RefusedBodyGone        = "body_gone"    // the staged body is not in its topic any more

	// The topic does not take it.
	RefusedNoTopic       = "no_topic"      // the row names a topic that does not exist
	RefusedUnknownTopic  = "unknown_topic" // the same, as a broker's answer
	RefusedNotAuthorised = "not_authorised"
	RefusedInvalidRecord = "invalid_record"
	RefusedInvalidTopic  = "invalid_topic"
	RefusedTimestamp     = "timestamp"
	RefusedCompression   = "compression"
	RefusedMessageFormat = "message_format"
	RefusedPolicy        = "policy"
	RefusedBatch         = "batch_refused" // the broker refused the whole batch for one record of it
	Refused              = "refused"       // another refusal

	// The brokers can't be reached, or can't serve.
	RefusedUnreachable    = "unreachable"
	RefusedTooFewReplicas = "too_few_replicas"
	RefusedNoLeader       = "no_leader"
	RefusedTimeout        = "timeout"
	RefusedAuthentication = "authentication"
	RefusedAbandoned      = "abandoned" // the client gave up: whether Kafka has it is not known
)

// Refusals returns the reasons.
func Refusals() []string {
	return []string{
		RefusedTopicInvalid, RefusedTopicNotAllowed, RefusedHeadersInvalid, RefusedHeadersTooLarge, RefusedContentEmpty, RefusedTooLarge,
		RefusedMsgIDEmpty, RefusedUnroutable, RefusedBadBodyRef, RefusedBodyGone,
		RefusedNoTopic, RefusedUnknownTopic, RefusedNotAuthorised, RefusedInvalidRecord, RefusedInvalidTopic, RefusedTimestamp,
		RefusedCompression, RefusedMessageFormat, RefusedPolicy, RefusedBatch, Refused,
		RefusedUnreachable, RefusedTooFewReplicas, RefusedNoLeader, RefusedTimeout, RefusedAuthentication, RefusedAbandoned,
	}
}
