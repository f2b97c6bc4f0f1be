package router

// Record is what goes to Kafka: the same bytes whether the stream or the sweeper builds it, but for the
// outbox_position header.
type Record struct {
	Topic   string
	Key     []byte
	Value   []byte
	Headers []Header
}

// Header is one Kafka record header.
type Header struct {
	Key   string
	Value []byte
}

// Refusal is why a row can never become a record. Its Reason is a metric label, its Text is for the person who looks at
// the dead letter; neither holds any of the payload.
type Refusal struct {
	Reason Reason
	Text   string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// Reason names a kind of refusal.
type Reason string
