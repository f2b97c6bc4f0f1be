package retry

// Class says what a failure to publish means for the message, its topic and its neighbours.
type Class uint8

const (
	// Unreachable is a fault of the way, not of the message: brokers away, no leader, too few replicas, time-outs.
	// Nothing is spent; the message may or may not have been written.
	Unreachable Class = iota
	// Refused is a refusal that may be lifted: unknown topic, not authorised. It spends a retry and closes the topic.
	Refused
	// Never is a refusal of this message for good: too large, invalid. It is a dead letter at once.
	Never
)

// String returns the class as logs and metrics spell it.
func (c Class) String() string {
	switch c {
	case Unreachable:
		return "unreachable"
	case Refused:
		return "refused"
	case Never:
		return "never"
	}
	return "unknown"
}
