package outbox

import (
	"context"
	"strings"
	"time"
)

// draft is a message on its way into a row.
type draft struct {
	id, topic, content, key, headers, trace, bodyRef, due string

	source *Message
	wants  variant
}

// maxArgs is how many placeholders an INSERT of one row has at most.
const maxArgs = 9

// draft checks and encodes a message. Nothing of it needs the database.
func (b *Box) draft(ctx context.Context, m *Message) (draft, error) {
	content, bodyErr := b.body(m.Body)
	if err := b.check(m); err != nil || bodyErr != nil {
		return draft{}, problems(err, bodyErr)
	}
	d := draft{id: m.ID, topic: m.Topic, content: content, key: m.Key, source: m}
	if d.id == "" {
		d.id = b.ids.next(b.now())
	} else {
		d.wants |= once
	}
	if ref, staged := m.Body.(BodyRef); staged {
		d.bodyRef = ref.String()
		d.wants |= withBodyRef
	}
	if d.key != "" {
		d.wants |= withKey
	}
	if len(m.Headers) > 0 {
		d.wants |= withHeaders
	}
	if _, own := m.Headers[headerTraceParent]; b.cfg.TraceParent != nil && !own {
		if trace := b.cfg.TraceParent(ctx); soundTraceParent(trace) {
			d.trace = trace
			d.wants |= withTrace
		}
	}
	if due := m.NotBefore; !due.IsZero() && due.After(b.now()) {
		d.due = dueText(due)
		d.wants |= withDue
	}
	return d, nil
}

// dueText is in UTC and rounded up to the second, which is what the column holds: never too early.
func dueText(due time.Time) string {
	return due.Add(time.Second - time.Nanosecond).UTC().Format(time.DateTime)
}

// fit brings a draft into the shape of the table.
func (b *Box) fit(d *draft, s *shape) error {
	if err := b.missing(s, d.wants); err != nil {
		return err
	}
	inHeaders := ""
	if d.wants&withTrace != 0 && !s.trace {
		d.wants &^= withTrace
		if s.headers {
			inHeaders = d.trace
			d.wants |= withHeaders
		}
	}
	if d.wants&withHeaders != 0 {
		d.headers = headersJSON(d.source.Headers, inHeaders)
		if size := len(d.headers); size > b.limits.Headers {
			return invalid("Headers", "take %d bytes as JSON and may take %d", size, b.limits.Headers)
		}
	}
	if d.wants&withDue != 0 && s.timestamp {
		d.wants |= sessionTime
	}
	return nil
}

// args appends the values for the placeholders of one row. What this message has not, and others of the same statement have, is NULL.
func (d *draft) args(args []any, v variant) []any {
	args = append(args, d.id, d.topic, d.content)
	for _, extra := range [...]struct {
		bit   variant
		value string
	}{{withKey, d.key}, {withHeaders, d.headers}, {withTrace, d.trace}, {withBodyRef, d.bodyRef}, {withDue, d.due}} {
		switch {
		case v&extra.bit == 0:
		case d.wants&extra.bit == 0:
			args = append(args, nil)
		default:
			args = append(args, extra.value)
		}
	}
	return args
}

// size is about what the message takes in a statement.
func (d *draft) size() int {
	const rest = 128 // quotes, commas, the tuple's own text
	return len(d.id) + len(d.topic) + len(d.content) + len(d.key) + len(d.headers) + len(d.trace) + len(d.bodyRef) + len(d.due) + rest
}

// problemList is everything that is wrong with a message.
type problemList []error

// Error returns the problems in one line.
func (p problemList) Error() string {
	texts := make([]string, len(p))
	for i, err := range p {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap makes the parts known to errors.Is and errors.As.
func (p problemList) Unwrap() []error { return p }

// add appends a problem, if it is one; a list is taken apart.
func (p *problemList) add(err error) {
	if more, ok := err.(problemList); ok { //nolint:errorlint // only this package's own, unwrapped
		*p = append(*p, more...)
	} else if err != nil {
		*p = append(*p, err)
	}
}

// problems makes one list of errors, nil when there is none.
func problems(errs ...error) error {
	var found problemList
	for _, err := range errs {
		found.add(err)
	}
	return found.orNil()
}

func (p problemList) orNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
