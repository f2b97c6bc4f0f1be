package kafka

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/eapache/go-resiliency/breaker"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/retry"
)

// ErrBatchRefused is a refusal of a whole batch, for a fault that may be another record's of the same batch. Who sends
// the record alone (Probe) learns whether it is its own.
var ErrBatchRefused = errors.New("kafka: the broker refused the batch that the record was sent in")

// Classify says what an error of this package means for the message, its topic and its neighbours.
//
// An error that nobody knows is taken for a fault of the way, unless the broker itself has answered with a code that
// nobody knows: then it is retried with a limit.
func Classify(err error) retry.Class {
	var (
		code   sarama.KError
		config sarama.ConfigurationError
		encode sarama.PacketEncodingError
	)
	switch {
	// What was on its way when we gave up: unknown, whatever sarama says besides.
	case errors.Is(err, ErrAbandoned):
		return retry.Unreachable
	case errors.Is(err, ErrBodyGone):
		return retry.Never
	case errors.Is(err, errBodyNotYet):
		return retry.Refused
	// One record of a batch is too large or invalid, the broker does not say which: the topic's next records go alone.
	case errors.Is(err, ErrBatchRefused):
		return retry.Refused
	// No broker answered. What the last of them said in passing must not count.
	case errors.Is(err, sarama.ErrOutOfBrokers):
		return retry.Unreachable
	// sarama's producer refuses at once for ten seconds what it has refused three times; since patientClient waits
	// for everything that can be waited for, that is a topic that is gone or forbidden.
	case errors.Is(err, breaker.ErrBreakerOpen):
		return retry.Refused
	case errors.As(err, &code):
		return classOf(code)
	// The producer's own bound on a record's size; nothing else in the configuration is looked at when sending.
	case errors.As(err, &config):
		return retry.Never
	// The record can't be written in Kafka's format, such as for a name of more than 32 KiB.
	case errors.As(err, &encode):
		return retry.Never
	}
	// Connections refused, reset, timed out or closed; an answer that can't be read; a context that ended; our Close.
	return retry.Unreachable
}

// classOf classifies a broker's error code.
func classOf(code sarama.KError) retry.Class {
	switch code {
	case
		// The leader is moving, starting, or away.
		sarama.ErrLeaderNotAvailable, sarama.ErrNotLeaderForPartition, sarama.ErrBrokerNotAvailable,
		sarama.ErrReplicaNotAvailable, sarama.ErrPreferredLeaderNotAvailable, sarama.ErrEligibleLeadersNotAvailable,
		sarama.ErrFencedLeaderEpoch, sarama.ErrUnknownLeaderEpoch, sarama.ErrListenerNotFound, sarama.ErrStaleBrokerEpoch,
		sarama.ErrStaleControllerEpochCode, sarama.ErrNotController, sarama.ErrReassignmentInProgress,
		sarama.ErrOffsetNotAvailable,
		// A broker that has just started can't hand out producer ids yet.
		sarama.ErrOffsetsLoadInProgress, sarama.ErrConsumerCoordinatorNotAvailable, sarama.ErrNotCoordinatorForConsumer,
		// Too few replicas; with the second one the record was written all the same, so the outcome is unknown.
		sarama.ErrNotEnoughReplicas, sarama.ErrNotEnoughReplicasAfterAppend,
		// Too slow, on the wire or behind it, or asked to slow down.
		sarama.ErrRequestTimedOut, sarama.ErrNetworkException, sarama.ErrThrottlingQuotaExceeded,
		// The batch came to harm on its way: the checksum is wrong.
		sarama.ErrInvalidMessage,
		// The broker's disk.
		sarama.ErrKafkaStorageError, sarama.ErrLogDirNotFound,
		// The idempotent producer's numbers do not fit the broker's: the outcome is unknown, a new producer helps.
		sarama.ErrOutOfOrderSequenceNumber, sarama.ErrDuplicateSequenceNumber, sarama.ErrInvalidProducerEpoch,
		sarama.ErrInvalidProducerIDMapping, sarama.ErrUnknownProducerID, sarama.ErrProducerFenced,
		// The brokers don't let us in at all, or don't speak with us: no message is at fault.
		sarama.ErrSASLAuthenticationFailed, sarama.ErrUnsupportedSASLMechanism, sarama.ErrIllegalSASLState,
		sarama.ErrSecurityDisabled, sarama.ErrUnsupportedVersion, sarama.ErrDelegationTokenExpired,
		sarama.ErrDelegationTokenNotFound, sarama.ErrDelegationTokenAuthDisabled,
		sarama.ErrDelegationTokenOwnerMismatch, sarama.ErrDelegationTokenAuthorizationFailed,
		sarama.ErrDelegationTokenRequestNotAllowed:
		return retry.Unreachable
	case
		// Larger than the topic or its segments allow. (Of a batch: ErrBatchRefused.)
		sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge,
		// Not valid for this topic, such as without a key where the topic is compacted.
		sarama.ErrInvalidRecord,
		// A name that Kafka does not take, or one of its own topics.
		sarama.ErrInvalidTopic:
		return retry.Never
	default:
		// Unknown topic, no right to it, a clock or a setting of the topic that somebody can put right; and the codes
		// that answer requests we never make.
		return retry.Refused
	}
}

// failsBatch reports errors that a broker gives to all records of a batch for the fault of one.
func failsBatch(err error) bool {
	var encode sarama.PacketEncodingError
	return errors.Is(err, sarama.ErrMessageSizeTooLarge) || errors.Is(err, sarama.ErrMessageSetSizeTooLarge) ||
		errors.Is(err, sarama.ErrInvalidRecord) || errors.As(err, &encode)
}

// Reason names a failure for a metric's label: a small fixed set.
func Reason(err error) string {
	switch {
	case errors.Is(err, ErrAbandoned):
		return words.RefusedAbandoned
	case errors.Is(err, ErrBatchRefused):
		return words.RefusedBatch
	case errors.Is(err, ErrBodyGone):
		return words.RefusedBodyGone
	case errors.Is(err, sarama.ErrOutOfBrokers):
		return words.RefusedUnreachable
	}
	if code, ok := errors.AsType[sarama.KError](err); ok {
		if about, ok := codes[code]; ok {
			return about.reason
		}
	}
	switch Classify(err) {
	case retry.Never:
		return words.RefusedTooLarge
	case retry.Refused:
		return words.Refused
	case retry.Unreachable:
	}
	return words.RefusedUnreachable
}

// codes names what people meet, and says what to do.
var codes = map[sarama.KError]struct{ reason, hint string }{
	sarama.ErrUnknownTopicOrPartition:      {words.RefusedUnknownTopic, "create the topic, or set kafka.create_topics"},
	sarama.ErrTopicAuthorizationFailed:     {words.RefusedNotAuthorised, "give the relay's user the rights to Write and Describe the topic"},
	sarama.ErrClusterAuthorizationFailed:   {words.RefusedNotAuthorised, "give the relay's user the right to IdempotentWrite on the cluster"},
	sarama.ErrMessageSizeTooLarge:          {words.RefusedTooLarge, "raise the topic's max.message.bytes"},
	sarama.ErrMessageSetSizeTooLarge:       {words.RefusedTooLarge, "raise the topic's segment.bytes"},
	sarama.ErrInvalidRecord:                {words.RefusedInvalidRecord, "see the broker's log for what the topic demands"},
	sarama.ErrInvalidTopic:                 {words.RefusedInvalidTopic, "correct the topic's name, or add a route for it"},
	sarama.ErrInvalidTimestamp:             {words.RefusedTimestamp, "set the clocks of relay and brokers, or widen the topic's message.timestamp.*.max.ms"},
	sarama.ErrUnsupportedCompressionType:   {words.RefusedCompression, "choose another kafka.compression"},
	sarama.ErrUnsupportedForMessageFormat:  {words.RefusedMessageFormat, "raise the topic's message.format.version"},
	sarama.ErrPolicyViolation:              {words.RefusedPolicy, "see the brokers' create.topic.policy; create the topic by hand"},
	sarama.ErrNotEnoughReplicas:            {words.RefusedTooFewReplicas, "start the missing brokers, or lower the topic's min.insync.replicas"},
	sarama.ErrNotEnoughReplicasAfterAppend: {words.RefusedTooFewReplicas, "start the missing brokers, or lower the topic's min.insync.replicas"},
	sarama.ErrLeaderNotAvailable:           {words.RefusedNoLeader, "start the missing brokers"},
	sarama.ErrRequestTimedOut:              {words.RefusedTimeout, "see whether the brokers are overloaded or replicas lag"},
	sarama.ErrSASLAuthenticationFailed:     {words.RefusedAuthentication, "check kafka.sasl"},
	sarama.ErrUnsupportedSASLMechanism:     {words.RefusedAuthentication, "check kafka.sasl.mechanism"},
}

// explain adds what to do to errors that end in a row's last_error or before an operator.
func explain(err error) error {
	var code sarama.KError
	if err == nil || errors.Is(err, sarama.ErrOutOfBrokers) || !errors.As(err, &code) {
		return err
	}
	if about, ok := codes[code]; ok {
		return fmt.Errorf("%w: %s", err, about.hint)
	}
	return err
}
