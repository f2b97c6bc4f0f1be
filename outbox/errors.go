package outbox

import (
	"errors"
	"fmt"
)

// What a caller may branch on. All are returned before anything was written for the message, except for ErrConflict,
// which has not changed the row that is in the way either.
var (
	// ErrNoTx is returned when the Execer is a pool of connections, on which the message would be committed by itself,
	// whatever becomes of the business rows.
	ErrNoTx = errors.New("no transaction: pass the *sql.Tx (or what your library has for it), not the pool; Config.AllowPool allows it")
	// ErrInvalid is returned for a message that could never be sent, or not as it was meant.
	ErrInvalid = errors.New("invalid message")
	// ErrNoColumn is returned when the table lacks the optional column that the message needs.
	ErrNoColumn = errors.New("no such column")
	// ErrConflict is returned when another unique key than the one on msg_id refuses the row.
	ErrConflict = errors.New("another unique key of the table refuses the row: only the one on msg_id tells a repeated message")
)

// InvalidError is one reason why a message is refused. errors.Is(err, ErrInvalid) holds for it. It has nothing of the
// message's content.
type InvalidError struct {
	Field  string // of Message: "Topic"
	Reason string
}

// Error returns the field and the reason.
func (e *InvalidError) Error() string { return e.Field + " " + e.Reason }

// Is makes the error an ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// subject names a message in an error: by its id when it has a sound one, else by its topic.
func subject(m *Message) string {
	switch {
	case m.ID != "" && checkID(m.ID, defaultLimits.ID) == nil:
		return m.ID
	case checkTopic(m.Topic, maxTopicName) == nil:
		return "for " + m.Topic
	}
	return "without a sound id and topic"
}
