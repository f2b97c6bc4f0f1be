package outbox

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits bounds the parts of a message by what the table's columns hold; zero means the pattern's column. A server in strict mode
// refuses what is longer; another one would cut it, so nothing longer is ever sent to it.
type Limits struct {
	// ID, Topic and Key count characters: 64, 64 and 255. Kafka allows no topic of more than 249.
	ID, Topic, Key int
	// Body and Headers count bytes of UTF-8, the headers as JSON: 65535, which is a TEXT. A MEDIUMTEXT holds 16777215; mind
	// kafka.max_message_bytes then.
	Body, Headers int
}

const (
	maxTopicName = 249 // Kafka's
	maxText      = 65535
)

var defaultLimits = Limits{ID: 64, Topic: 64, Key: 255, Body: maxText, Headers: maxText}

// orDefault fills in what is zero.
func (l Limits) orDefault() Limits {
	for _, f := range []struct{ value, standard *int }{
		{&l.ID, &defaultLimits.ID},
		{&l.Topic, &defaultLimits.Topic},
		{&l.Key, &defaultLimits.Key},
		{&l.Body, &defaultLimits.Body},
		{&l.Headers, &defaultLimits.Headers},
	} {
		if *f.value == 0 {
			*f.value = *f.standard
		}
	}
	l.Topic = min(l.Topic, maxTopicName)
	return l
}

// lastTime bounds NotBefore: older servers convert time zones up to January 2038 only and would leave a later time as it is.
var lastTime = time.Date(2038, time.January, 18, 0, 0, 0, 0, time.UTC)

// check returns everything that is wrong with a message but for its body and the size of its headers.
func (b *Box) check(m *Message) error {
	var found problemList
	if m.ID != "" {
		found.add(checkID(m.ID, b.limits.ID))
	}
	found.add(checkTopic(m.Topic, b.limits.Topic))
	switch {
	case !utf8.ValidString(m.Key):
		found.add(invalid("Key", "is no UTF-8"))
	case tooLong(m.Key, b.limits.Key):
		found.add(invalid("Key", "has %d characters and may have %d", utf8.RuneCountInString(m.Key), b.limits.Key))
	}
	for name, value := range m.Headers {
		found.add(checkHeader(name, value))
	}
	if m.NotBefore.After(lastTime) {
		found.add(invalid("NotBefore", "is after %s, further than servers reckon", lastTime.Format(time.DateOnly)))
	}
	return found.orNil()
}

func checkID(id string, limit int) error {
	switch {
	case !utf8.ValidString(id):
		return invalid("ID", "is no UTF-8")
	case tooLong(id, limit):
		return invalid("ID", "has %d characters and may have %d", utf8.RuneCountInString(id), limit)
	case strings.ContainsFunc(id, unicode.IsControl):
		return invalid("ID", "has a control character")
	case id[0] == ' ' || id[len(id)-1] == ' ':
		return invalid("ID", "begins or ends with a space, which many collations ignore")
	}
	return nil
}

func checkTopic(topic string, limit int) error {
	switch topic {
	case "":
		return invalid("Topic", "is missing")
	case ".", "..":
		return invalid("Topic", `can't be "." or ".."`)
	}
	for i := range len(topic) {
		if !topicByte(topic[i]) {
			return invalid("Topic", "may have only ASCII letters, digits, dot, underscore and hyphen")
		}
	}
	if len(topic) > limit {
		return invalid("Topic", "has %d characters and may have %d", len(topic), limit)
	}
	return nil
}

func topicByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// The headers that the relay writes itself: it would leave out a message's own of these names.
const (
	headerMsgID       = "msg_id"
	headerPrefix      = "outbox_"
	headerTraceParent = "traceparent"
)

func checkHeader(name, value string) error {
	switch {
	case name == "":
		return invalid("Headers", "have one without a name")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return invalid("Headers", "have a name that is no printable UTF-8")
	case name == headerMsgID || strings.HasPrefix(name, headerPrefix):
		return invalid("Headers", "have the name %q, which the relay writes itself", name)
	case !utf8.ValidString(value):
		return invalid("Headers", "have a value that is no UTF-8: %q", name)
	}
	return nil
}

func tooLong(s string, limit int) bool {
	return len(s) > limit && utf8.RuneCountInString(s) > limit
}

// body returns the content's text, "" for a staged body. The error tells no content.
func (b *Box) body(value any) (string, error) {
	if ref, staged := value.(BodyRef); staged {
		if _, err := ParseBodyRef(ref.String()); err != nil {
			return "", errors.Join(invalid("Body", "is staged nowhere"), err)
		}
		return "", nil
	}
	content, err := b.encode(value)
	if err == nil && len(content) > b.limits.Body {
		return "", invalid("Body", "has %d bytes and may have %d; make it smaller, or the column larger and then Limits.Body", len(content), b.limits.Body)
	}
	return content, err
}

// encode returns a body as it goes out, whatever its size.
func (b *Box) encode(value any) (string, error) {
	var given []byte
	switch v := value.(type) {
	case nil:
		return "", invalid("Body", "is missing")
	case []byte:
		given = v
	case json.RawMessage:
		given = v
	default:
		encoded, err := json.Marshal(value)
		if err != nil {
			return "", problemList{invalid("Body", "of type %T can't be encoded as JSON", value), err}
		}
		return string(encoded), nil
	}
	switch {
	case len(given) == 0:
		return "", invalid("Body", "is empty")
	case b.cfg.Text && !utf8.Valid(given), !b.cfg.Text && !validJSON(given):
		return "", b.noText(given)
	}
	return string(given), nil
}

// validJSON is json.Valid for text that is UTF-8, too: json.Valid takes any byte within a string.
func validJSON(text []byte) bool { return json.Valid(text) && utf8.Valid(text) }

func (b *Box) noText(text []byte) error {
	if !utf8.Valid(text) {
		return invalid("Body", "is no UTF-8; the column holds text: encode bytes, for instance in base64")
	}
	var raw json.RawMessage
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &raw)); ok {
		return invalid("Body", "is no JSON from byte %d on; set Config.Text to send other text", syntax.Offset)
	}
	return invalid("Body", "is no JSON; set Config.Text to send other text")
}
