package router

import "fmt"

// Refusal is why a row can never become a record. Its Reason is a metric label, its Text is for the person who looks at
// the dead letter; neither holds any of the payload.
type Refusal struct {
	Reason string // one of words.Refused*
	Text   string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

func refuse(reason, format string, args ...any) *Refusal {
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
