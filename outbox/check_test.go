package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
)

// sound returns a message with one thing changed.
func sound(change func(m *outbox.Message)) outbox.Message {
	m := outbox.Message{ID: "m-1", Topic: "orders", Body: json.RawMessage(`{"a":1}`)}
	change(&m)
	return m
}

func TestInvalidMessagesAreRefusedBeforeAnySQL(t *testing.T) {
	t.Parallel()
	headers := func(name, value string) func(*outbox.Message) {
		return func(m *outbox.Message) { m.Headers = map[string]string{"sound": "x", name: value} }
	}
	for name, c := range map[string]struct {
		change func(m *outbox.Message)
		want   string
	}{
		"TopicMissing":    {func(m *outbox.Message) { m.Topic = "" }, "Topic is missing"},
		"TopicDot":        {func(m *outbox.Message) { m.Topic = "." }, "Topic can't be"},
		"TopicDots":       {func(m *outbox.Message) { m.Topic = ".." }, "Topic can't be"},
		"TopicSpace":      {func(m *outbox.Message) { m.Topic = "or ders" }, "Topic may have only ASCII letters"},
		"TopicNotASCII":   {func(m *outbox.Message) { m.Topic = "bestätigt" }, "Topic may have only ASCII letters"},
		"TopicLong":       {func(m *outbox.Message) { m.Topic = strings.Repeat("t", 65) }, "Topic has 65 characters and may have 64"},
		"IDLong":          {func(m *outbox.Message) { m.ID = strings.Repeat("ä", 65) }, "ID has 65 characters and may have 64"},
		"IDNoUTF8":        {func(m *outbox.Message) { m.ID = "a\xff" }, "ID is no UTF-8"},
		"IDControl":       {func(m *outbox.Message) { m.ID = "a\nb" }, "ID has a control character"},
		"IDSpaceBehind":   {func(m *outbox.Message) { m.ID = "a " }, "ID begins or ends with a space"},
		"IDSpaceBefore":   {func(m *outbox.Message) { m.ID = " a" }, "ID begins or ends with a space"},
		"KeyLong":         {func(m *outbox.Message) { m.Key = strings.Repeat("ключ", 64) }, "Key has 256 characters and may have 255"},
		"KeyNoUTF8":       {func(m *outbox.Message) { m.Key = "\xc3" }, "Key is no UTF-8"},
		"BodyMissing":     {func(m *outbox.Message) { m.Body = nil }, "Body is missing"},
		"BodyEmpty":       {func(m *outbox.Message) { m.Body = []byte{} }, "Body is empty"},
		"BodyEmptyRaw":    {func(m *outbox.Message) { m.Body = json.RawMessage(nil) }, "Body is empty"},
		"BodyNoJSON":      {func(m *outbox.Message) { m.Body = []byte(`{"a":1,}`) }, "Body is no JSON from byte 8 on"},
		"BodyCut":         {func(m *outbox.Message) { m.Body = []byte(`{"a":1`) }, "Body is no JSON from byte 6 on"},
		"BodyTwo":         {func(m *outbox.Message) { m.Body = []byte(`{}{}`) }, "Body is no JSON from byte 3 on"},
		"BodyNoUTF8":      {func(m *outbox.Message) { m.Body = []byte("\"\xff\"") }, "Body is no UTF-8"},
		"BodyLarge":       {func(m *outbox.Message) { m.Body = strings.Repeat("x", 65534) }, "Body has 65536 bytes and may have 65535"},
		"BodyChannel":     {func(m *outbox.Message) { m.Body = make(chan int) }, "Body of type chan int can't be encoded"},
		"BodyNaN":         {func(m *outbox.Message) { m.Body = math.NaN() }, "Body of type float64 can't be encoded"},
		"HeaderNameEmpty": {headers("", "v"), "have one without a name"},
		"HeaderName":      {headers("a\x00", "v"), "have a name that is no printable UTF-8"},
		"HeaderNameUTF8":  {headers("a\xff", "v"), "have a name that is no printable UTF-8"},
		"HeaderReserved":  {headers("msg_id", "v"), `the name "msg_id", which the relay writes itself`},
		"HeaderPrefix":    {headers("outbox_source", "v"), `the name "outbox_source"`},
		"HeaderValue":     {headers("a", "\xff"), `a value that is no UTF-8: "a"`},
		"HeadersLarge":    {headers("a", strings.Repeat("x", 65535)), "Headers take 65555 bytes as JSON and may take 65535"},
		"NotBeforeFar":    {func(m *outbox.Message) { m.NotBefore = time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC) }, "NotBefore is after 2038-01-18"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, s := sound(c.change), &script{}
			_, err := box(t, outbox.Config{}).Put(t.Context(), s, m)
			require.ErrorIs(t, err, outbox.ErrInvalid)
			require.ErrorContains(t, err, c.want)
			invalid, ok := errors.AsType[*outbox.InvalidError](err)
			require.True(t, ok)
			assert.True(t, strings.HasPrefix(c.want, invalid.Field) || invalid.Field == "Headers", invalid.Field)
			_, err = outbox.PutAll(t.Context(), s, []outbox.Message{sound(func(*outbox.Message) {}), m})
			require.ErrorIs(t, err, outbox.ErrInvalid)
			require.ErrorContains(t, err, "message 2 of 2")
			assert.Empty(t, s.queries, "nothing was sent, not even the message that is sound")
		})
	}
}

func TestEveryProblemIsToldAtOnceAndNoContent(t *testing.T) {
	t.Parallel()
	_, err := outbox.Put(t.Context(), &script{}, outbox.Message{
		ID: "id\x00secret", Topic: "no topic secret", Key: "\xffsecret", Body: []byte(`{"card":secret}`), Headers: map[string]string{"h": "\xffsecret"},
	})
	require.Error(t, err)
	for _, field := range []string{"ID ", "Topic ", "Key ", "Body ", "Headers "} {
		require.ErrorContains(t, err, field)
	}
	assert.NotContains(t, err.Error(), "secret")
	assert.NotContains(t, err.Error(), "\n")
}

func TestWhatFitsIsTaken(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m *outbox.Message){
		"Topic":   func(m *outbox.Message) { m.Topic = strings.Repeat("t", 64) },
		"ID":      func(m *outbox.Message) { m.ID = strings.Repeat("号", 64) },
		"Key":     func(m *outbox.Message) { m.Key = strings.Repeat("号", 255) },
		"Body":    func(m *outbox.Message) { m.Body = strings.Repeat("x", 65533) },
		"Past":    func(m *outbox.Message) { m.NotBefore = time.Unix(0, 0) },
		"Headers": func(m *outbox.Message) { m.Headers = map[string]string{"traceparent": "own", "Ü": "\x00\n"} },
	} {
		_, err := box(t, outbox.Config{}).Put(t.Context(), &script{}, sound(change))
		require.NoError(t, err, name)
	}
	wide := box(t, outbox.Config{Limits: outbox.Limits{Topic: 249, Body: 1 << 20}})
	_, err := wide.Put(t.Context(), &script{}, outbox.Message{Topic: strings.Repeat("t", 249), Body: strings.Repeat("x", 1<<20-2)})
	require.NoError(t, err)
}

func TestBodies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body any
		want string
	}{
		"Bytes":       {[]byte(" {\"a\" : 1e3}\n"), " {\"a\" : 1e3}\n"},
		"Raw":         {json.RawMessage(`[1,2]`), `[1,2]`},
		"Struct":      {struct{ A int }{1}, `{"A":1}`},
		"Map":         {map[string]any{"b": nil, "a": true}, `{"a":true,"b":null}`},
		"String":      {`{"a":1}`, `"{\"a\":1}"`},
		"Number":      {42, `42`},
		"Marshaler":   {time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), `"2026-01-02T03:04:05Z"`},
		"NilPointer":  {(*outbox.Message)(nil), `null`},
		"OwnByteType": {ownBytes("abc"), `"YWJj"`},
	} {
		row, err := box(t, outbox.Config{}).Row(t.Context(), sound(func(m *outbox.Message) { m.Body = c.body }))
		require.NoError(t, err, name)
		assert.Equal(t, c.want, string(row.Content), name)
	}
	text := box(t, outbox.Config{Text: true})
	row, err := text.Row(t.Context(), sound(func(m *outbox.Message) { m.Body = []byte("<a>ä</a>") }))
	require.NoError(t, err)
	assert.Equal(t, "<a>ä</a>", string(row.Content))
	_, err = text.Row(t.Context(), sound(func(m *outbox.Message) { m.Body = []byte("\xff") }))
	require.ErrorContains(t, err, "is no UTF-8")
}

type ownBytes []byte

func TestConfigTellsEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	columns := outbox.DefaultColumns()
	columns.MsgID, columns.Status, columns.Key = "", "", ""
	_, err := outbox.New(outbox.Config{
		Table: outbox.Table{Database: "app"}, Columns: columns, ChunkRows: 8001, ChunkBytes: -1, Limits: outbox.Limits{ID: -1, Topic: 250},
	})
	for _, want := range []string{
		"Table.Name is empty", "Columns.MsgID is empty", "Columns.Status is empty", "ChunkRows is 8001 and may be 0 (the default) to 8000",
		"ChunkBytes is -1", "Limits.ID is -1", "Limits.Topic is 250 and may be 0 (the default) to 249",
	} {
		require.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "Columns.Key", "an optional column may have no name")
}

// FuzzHeaders: what is written is read by encoding/json as what was meant, and is the same text each time.
func FuzzHeaders(f *testing.F) {
	f.Add("tenant", "eu", "ü\"\\", "\x00\x1f\x7f\u2028<>&")
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string) {
		m := outbox.Message{Topic: "t", Body: 1, Headers: map[string]string{name1: value1, name2: value2}}
		b := box(t, outbox.Config{TraceParent: func(context.Context) string { return "00-a-b-01" }})
		row, err := b.Row(t.Context(), m)
		if err != nil {
			require.ErrorIs(t, err, outbox.ErrInvalid)
			return
		}
		var back map[string]string
		require.NoError(t, json.Unmarshal(row.Headers, &back), "%s", row.Headers)
		assert.Equal(t, m.Headers, back)
		again, err := b.Row(t.Context(), m)
		require.NoError(t, err)
		assert.Equal(t, string(row.Headers), string(again.Headers))
	})
}

func TestManyHeadersAreSorted(t *testing.T) {
	t.Parallel()
	headers := map[string]string{}
	var want []string
	for i := range 20 {
		headers[fmt.Sprintf("h%02d", i)] = "v"
		want = append(want, fmt.Sprintf(`"h%02d":"v"`, i))
	}
	row, err := box(t, outbox.Config{}).Row(t.Context(), sound(func(m *outbox.Message) { m.Headers = headers }))
	require.NoError(t, err)
	assert.Equal(t, "{"+strings.Join(want, ",")+"}", string(row.Headers))
}
