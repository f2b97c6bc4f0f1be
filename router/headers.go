package router

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// headers builds the record's headers in a fixed order: the relay's, traceparent, then the row's own by name. It also
// returns the bytes of the msg_id, which are the key of rows that have none.
func (r *Router) headers(row *outbox.Row, position string) ([]Header, []byte, *Refusal) {
	own, refusal := ownHeaders(row)
	if refusal != nil {
		return nil, nil, refusal
	}
	// One buffer for all values: the header's lengths are known, and each is a separate allocation otherwise.
	buf := make([]byte, 0, len(row.MsgID)+len(position)+len(row.Created)+len(row.TraceParent))
	value := func(text string) []byte {
		from := len(buf)
		buf = append(buf, text...)
		return buf[from:len(buf):len(buf)]
	}
	msgID := value(row.MsgID)
	headers := make([]Header, 0, 5+len(own))
	headers = append(headers,
		Header{words.HeaderMsgID, msgID},
		Header{words.HeaderSource, r.source},
		Header{words.HeaderPosition, value(position)},
	)
	if row.Created != "" {
		headers = append(headers, Header{words.HeaderCreated, value(row.Created)})
	}
	if row.TraceParent != "" {
		headers = append(headers, Header{words.HeaderTraceParent, value(row.TraceParent)})
	}
	return append(headers, own...), msgID, nil
}

// ownHeaders reads the row's headers column: a JSON object of strings. Numbers, true and false go as they are written,
// null is left out. NULL, blank text and a JSON null are no headers.
func ownHeaders(row *outbox.Row) ([]Header, *Refusal) {
	text := bytes.TrimSpace(row.Headers)
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, refuse(words.RefusedHeadersInvalid, "the headers are no JSON object; write them as {\"name\": \"value\"}")
	}
	own := make([]Header, 0, len(members))
	for name, raw := range members {
		switch raw[0] {
		case '{', '[':
			return nil, refuse(words.RefusedHeadersInvalid, "a header's value is an object or an array; write headers as {\"name\": \"value\"}")
		case 'n':
			continue
		}
		if reserved(name, row) && (name != words.HeaderResend || !isCount(raw)) {
			continue
		}
		value := []byte(raw)
		if raw[0] == '"' {
			value = unquote(raw)
		}
		own = append(own, Header{name, value})
	}
	slices.SortFunc(own, func(a, b Header) int { return strings.Compare(a.Key, b.Key) })
	return own, nil
}

// isCount reports whether a header's value is a number in quotes.
func isCount(raw []byte) bool {
	digits, ok := bytes.CutPrefix(raw, []byte(`"`))
	digits, closed := bytes.CutSuffix(digits, []byte(`"`))
	return ok && closed && len(digits) > 0 && len(digits) < 10 && len(bytes.Trim(digits, "0123456789")) == 0
}

// reserved reports whether a row's own header is left out: the relay writes one of that name, by whose value consumers
// deduplicate, or the name is kept for it.
func reserved(name string, row *outbox.Row) bool {
	return name == words.HeaderMsgID || strings.HasPrefix(name, words.HeaderReserved) ||
		name == words.HeaderTraceParent && row.TraceParent != ""
}
