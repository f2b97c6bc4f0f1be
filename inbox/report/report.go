package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"example.com/outbox-relay/internal/words"
)

// Bounds of one report. Decode refuses what is beyond them.
const (
	MaxIDs     = 10_000  // messages
	MaxBytes   = 1 << 20 // encoded
	MaxIDBytes = 512     // of one msg_id
	MaxName    = 255     // of a group, a topic or a source
	chunk      = 1000    // what Split makes
)

// Report says that a consumer group has consumed messages. It travels as JSON:
//
//	{"group":"points","topic":"order-events","source":"default","msg_ids":["8f14...","8f15..."]}
//
// Fields that nobody knows are passed over, so that newer consumers may add some.
type Report struct {
	// Source is the outbox_source header of the messages. Empty: any source that has them. Where several relays read one
	// topic of reports, it keeps each from looking for the others' messages.
	Source string `json:"source,omitempty"`
	// Group is the consumer group. It may be empty where no group is asked for (acks.groups).
	Group string `json:"group,omitempty"`
	// Topic is the Kafka topic that the messages came from. It is needed only where two topics share msg_ids.
	Topic string `json:"topic,omitempty"`
	// MsgIDs are the msg_id headers of the messages.
	MsgIDs []string `json:"msg_ids"`
}

// ErrInvalid is a report that can't be one: no JSON of that form, no ids, too many or too long ones. Sending it again does
// not help.
var ErrInvalid = errors.New("not a usable report")

// HeaderMsgID is the header of a message whose value is reported.
const HeaderMsgID = words.HeaderMsgID

// Validate checks the bounds. Its errors name no ids: those are data.
func (r *Report) Validate() error {
	switch {
	case len(r.MsgIDs) == 0:
		return fmt.Errorf("%w: msg_ids is empty", ErrInvalid)
	case len(r.MsgIDs) > MaxIDs:
		return fmt.Errorf("%w: %d msg_ids, at most %d go into one report", ErrInvalid, len(r.MsgIDs), MaxIDs)
	}
	for name, value := range map[string]string{"source": r.Source, "group": r.Group, "topic": r.Topic} {
		if len(value) > MaxName {
			return fmt.Errorf("%w: %s has %d bytes, at most %d are possible", ErrInvalid, name, len(value), MaxName)
		}
		if strings.IndexByte(value, 0) >= 0 || !utf8.ValidString(value) {
			return fmt.Errorf("%w: %s is no text", ErrInvalid, name)
		}
	}
	for i, id := range r.MsgIDs {
		if id == "" || len(id) > MaxIDBytes || !utf8.ValidString(id) {
			return fmt.Errorf("%w: msg_ids[%d] is empty, no text, or longer than %d bytes", ErrInvalid, i, MaxIDBytes)
		}
	}
	return nil
}

// Encode returns the report as the relay reads it: the value of a Kafka record, or the body of a request.
func (r *Report) Encode() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	if len(encoded) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are possible; see Split", ErrInvalid, len(encoded), MaxBytes)
	}
	return encoded, nil
}

// Decode reads a report. The data is somebody else's: whatever it is, Decode returns a report within the bounds or ErrInvalid.
func Decode(data []byte) (Report, error) {
	if len(data) > MaxBytes {
		return Report{}, fmt.Errorf("%w: %d bytes, at most %d are possible", ErrInvalid, len(data), MaxBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	var r *Report
	// The decoder's own errors quote what they do not understand.
	if err := decoder.Decode(&r); err != nil || r == nil || decoder.More() {
		return Report{}, fmt.Errorf(`%w: it is no JSON such as {"group":"points","msg_ids":["..."]}`, ErrInvalid)
	}
	if err := r.Validate(); err != nil {
		return Report{}, err
	}
	return *r, nil
}

// Split cuts a report of any length into ones that can be sent.
func (r *Report) Split() []Report {
	var parts []Report
	for ids := r.MsgIDs; len(ids) > 0; {
		n := min(len(ids), chunk)
		part := *r
		part.MsgIDs, ids = ids[:n:n], ids[n:]
		parts = append(parts, part)
	}
	return parts
}

// Counts says what came of the messages of a report. Each is in one of them.
type Counts struct {
	// Consumed messages got the status consumed by this report.
	Consumed int `json:"consumed"`
	// Waiting messages wait for the reports of other groups.
	Waiting int `json:"waiting"`
	// Already tells how many were reported before.
	Already int `json:"already"`
	// Unknown ids belong to no message of the tables: archived, another source's, or never there. That is no error.
	Unknown int `json:"unknown"`
	// Ambiguous ids belong to messages of several topics, and the report does not say which: name the topic.
	Ambiguous int `json:"ambiguous"`
	// Ignored messages are dead letters or were discarded: a person decides about those.
	Ignored int `json:"ignored"`
	// Stranger counts messages of topics whose configured groups the reporting one is none of.
	Stranger int `json:"stranger"`
}

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	c.Consumed += other.Consumed
	c.Waiting += other.Waiting
	c.Already += other.Already
	c.Unknown += other.Unknown
	c.Ambiguous += other.Ambiguous
	c.Ignored += other.Ignored
	c.Stranger += other.Stranger
}
