package outboxtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/outbox-relay/outbox"
)

// RequireMessage fails the test unless a message was put, and committed, that agrees with want in everything that want has:
// Topic, ID, Key, NotBefore (to the second), each of its Headers, and the Body, compared as JSON where it is some. It returns
// the first such message.
func RequireMessage(t testing.TB, b *Box, want outbox.Message) Message {
	t.Helper()
	body, err := text(want.Body)
	if err != nil {
		t.Fatalf("the wanted body: %v", err)
	}
	there := b.Messages()
	for _, m := range there {
		if agrees(m, want, body) {
			return m
		}
	}
	t.Fatalf("no such message: %s\nput were: %s", show(wanted(want, body)), list(there))
	return Message{}
}

// RequireNone fails the test if a message was put, and committed, to one of the topics; without topics, to any.
func RequireNone(t testing.TB, b *Box, topics ...string) {
	t.Helper()
	there := slices.DeleteFunc(b.Messages(), func(m Message) bool {
		return len(topics) > 0 && !slices.Contains(topics, m.Topic)
	})
	if len(there) > 0 {
		t.Fatalf("put were: %s", list(there))
	}
}

func agrees(m Message, want outbox.Message, body []byte) bool {
	same := func(got, want string) bool { return want == "" || got == want }
	if !same(m.Topic, want.Topic) || !same(m.ID, want.ID) || !same(m.Key, want.Key) {
		return false
	}
	if !want.NotBefore.IsZero() && !m.NotBefore.Equal(ceil(want.NotBefore)) {
		return false
	}
	for name, value := range want.Headers {
		if got, ok := m.Headers[name]; !ok || got != value {
			return false
		}
	}
	return body == nil || sameText(m.Body, body)
}

// ceil is what becomes of a time in a row.
func ceil(at time.Time) time.Time { return at.Add(time.Second - time.Nanosecond).Truncate(time.Second) }

// text encodes a body as the Box does, nil for none.
func text(body any) ([]byte, error) {
	switch v := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	case json.RawMessage:
		return v, nil
	}
	return json.Marshal(body)
}

// sameText compares as JSON, so that white space and the order of members don't count, or byte by byte what is none.
func sameText(a, b []byte) bool {
	left, err := decode(a)
	if err != nil {
		return bytes.Equal(a, b)
	}
	right, err := decode(b)
	return err == nil && reflect.DeepEqual(left, right)
}

func decode(text []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // large numbers keep their digits
	err = decoder.Decode(&value)
	return value, err
}

func wanted(m outbox.Message, body []byte) Message {
	return Message{ID: m.ID, Topic: m.Topic, Key: m.Key, Body: body, Headers: m.Headers, NotBefore: m.NotBefore}
}

func list(messages []Message) string {
	if len(messages) == 0 {
		return "none"
	}
	lines := make([]string, len(messages))
	for i, m := range messages {
		lines[i] = "\n  " + show(m)
	}
	return strings.Join(lines, "")
}

func show(m Message) string {
	line := fmt.Sprintf("topic %q id %q key %q body %s", m.Topic, m.ID, m.Key, m.Body)
	if len(m.Headers) > 0 {
		line += fmt.Sprintf(" headers %q", m.Headers)
	}
	if !m.NotBefore.IsZero() {
		line += " not before " + m.NotBefore.Format(time.RFC3339)
	}
	return line
}
