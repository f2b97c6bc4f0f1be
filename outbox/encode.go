package outbox

import (
	"slices"
	"unicode/utf8"
)

// headersJSON writes headers as the JSON object of strings that the relay reads, by name, so that one message is always the
// same text. A traceparent is put in where the table has no column for it.
func headersJSON(headers map[string]string, traceParent string) string {
	if len(headers) == 0 && traceParent == "" {
		return ""
	}
	size := len(traceParent) + 2*len(headerTraceParent)
	for name, value := range headers {
		size += len(name) + len(value) + len(`"":"",`)
	}
	text := append(make([]byte, 0, size+size/8), '{')
	if traceParent != "" {
		text = appendPair(text, headerTraceParent, traceParent)
	}
	// Few headers are sorted on the stack.
	var few [8]string
	names := few[:0]
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text = appendPair(text, name, headers[name])
	}
	return string(append(text, '}'))
}

func appendPair(text []byte, name, value string) []byte {
	if len(text) > 1 {
		text = append(text, ',')
	}
	text = appendString(text, name)
	text = append(text, ':')
	return appendString(text, value)
}

// appendString writes a JSON string. The text is UTF-8.
func appendString(text []byte, s string) []byte {
	const hex = "0123456789abcdef"
	text = append(text, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			text = append(text, '\\', c)
		case c < 0x20 || c == 0x7f:
			text = append(text, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			text = append(text, c)
		}
	}
	return append(text, '"')
}

// traceParentLimit is the width of the column trace_parent. The W3C's version 00 has 55 characters.
const traceParentLimit = 64

// soundTraceParent reports whether a hook's answer can be written. What is none must never fail the business transaction.
func soundTraceParent(s string) bool {
	if s == "" || len(s) > traceParentLimit || !utf8.ValidString(s) {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
