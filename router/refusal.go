package router

import "fmt"

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

// The reasons, as metrics and the command line spell them.
const (
	ReasonTopicInvalid    Reason = "topic_invalid"
	ReasonTopicNotAllowed Reason = "topic_not_allowed"
	ReasonHeadersInvalid  Reason = "headers_invalid"
	ReasonHeadersTooLarge Reason = "headers_too_large"
	ReasonContentEmpty    Reason = "content_empty"
	ReasonTooLarge        Reason = "too_large"
	ReasonMsgIDEmpty      Reason = "msg_id_empty"
)

// Reasons lists every reason, for metrics that want their labels before the first event.
func Reasons() []Reason {
	return []Reason{
		ReasonTopicInvalid, ReasonTopicNotAllowed, ReasonHeadersInvalid, ReasonHeadersTooLarge,
		ReasonContentEmpty, ReasonTooLarge, ReasonMsgIDEmpty,
	}
}

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// quote shows a topic name in a text: long ones are cut, since a name that is no name may be anything.
func quote(name string) string {
	const most = 64
	if len(name) > most {
		return fmt.Sprintf("%.64q...", name)
	}
	return fmt.Sprintf("%q", name)
}
