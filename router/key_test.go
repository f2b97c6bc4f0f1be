package router_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/router"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, key, content, column, want string
	}{
		{"ColumnByDefault", "", `{}`, "col", "col"},
		{"MsgIDWithoutColumn", "", `{}`, "", "m-1"},
		{"ColumnByName", "msg_key", `{}`, "col", "col"},
		{"MsgID", "msg_id", `{}`, "col", "m-1"},
		{"ID", "id", `{}`, "col", "7"},
		{"String", "/a", `{"a":"x"}`, "col", "x"},
		{"Number", "/a", `{"a":12345678901234567890.50}`, "col", "12345678901234567890.50"},
		{"Bool", "/a", `{"a":true}`, "col", "true"},
		{"Nested", "/a/b", `{"x":{"b":"no"},"a":{"c":[1,"}"],"b":"yes"}}`, "col", "yes"},
		{"Array", "/a/1/b", `{"a":[{"b":"0"},{"b":"1"}]}`, "col", "1"},
		{"RootArray", "/0", `["x","y"]`, "col", "x"},
		{"EmptyName", "/", `{"":"x"}`, "col", "x"},
		{"SlashAndTilde", "/a~1b~0c", `{"a/b~c":"x"}`, "col", "x"},
		{"EscapedName", "/ab", `{"\u0061b":"x"}`, "col", "x"},
		{"EscapedValue", "/a", `{"a":"\"\u00e9\\"}`, "col", `"é\`},
		{"NumberAsName", "/0", `{"0":"x"}`, "col", "x"},
		{"WhiteSpace", "/a", " {\n\t\"b\" : [ 1 , 2 ] ,\r\n \"a\" : \"x\" } ", "col", "x"},
		{"FirstOfTwins", "/a", `{"a":"1","a":"2"}`, "col", "1"},
		{"BrokenBehind", "/a", `{"a":"x", broken`, "col", "x"},
		{"FallsBackToColumn", "/a", `{"b":1}`, "col", "col"},
		{"FallsBackToMsgID", "/a", `{"b":1}`, "", "m-1"},
		{"NullFallsBack", "/a", `{"a":null}`, "col", "col"},
		{"ObjectFallsBack", "/a", `{"a":{"b":1}}`, "col", "col"},
		{"ArrayFallsBack", "/a", `{"a":[1]}`, "col", "col"},
		{"EmptyStringFallsBack", "/a", `{"a":""}`, "col", "col"},
		{"ThroughScalarFallsBack", "/a/b", `{"a":"b"}`, "col", "col"},
		{"BeyondArrayFallsBack", "/2", `[1,2]`, "col", "col"},
		{"EmptyArrayFallsBack", "/0", `[]`, "col", "col"},
		{"NameInArrayFallsBack", "/x", `["x"]`, "col", "col"},
		{"NoJSONFallsBack", "/a", `hello, {"a":1}`, "col", "col"},
		{"CutFallsBack", "/a", `{"a":"x`, "col", "col"},
		{"CutInSkippedFallsBack", "/a", `{"b":{"c":"}`, "col", "col"},
		{"NonsenseFallsBack", "/a", `{"a":nonsense}`, "col", "col"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := row()
			in.Content = []byte(c.content)
			if c.column != "" {
				in.Key = []byte(c.column)
			}
			rec, err := newRouter(t, router.Config{Key: c.key}).Route(in, "sweep")
			require.NoError(t, err, "content that is no JSON is delivered as it is")
			assert.Equal(t, c.want, string(rec.Key))
			assert.Equal(t, c.content, string(rec.Value))
		})
	}
}

func TestRouteHasItsOwnKey(t *testing.T) {
	t.Parallel()
	r := newRouter(t, router.Config{Key: "/a", Routes: []router.Route{{Match: "orders", Key: "/b"}, {Match: "other"}}})
	in := row()
	in.Content = []byte(`{"a":"inherited","b":"own"}`)
	for topic, want := range map[string]string{"orders": "own", "other": "inherited", "unrouted": "inherited"} {
		in.Topic = topic
		rec, err := r.Route(in, "sweep")
		require.NoError(t, err)
		assert.Equal(t, want, string(rec.Key), topic)
	}
}

func TestKeyColumnTellsWhatToRead(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"": "", "/a": "", "msg_id": "", "ID": "", "customer": "customer"} {
		column, ok := router.KeyColumn(key)
		assert.Equal(t, want, column, key)
		assert.Equal(t, want != "", ok, key)
	}
	in := row()
	in.Key = []byte("c-9")
	rec, err := newRouter(t, router.Config{Key: "customer", Routes: []router.Route{{Match: "*", Key: "Customer"}}}).Route(in, "sweep")
	require.NoError(t, err)
	assert.Equal(t, "c-9", string(rec.Key))
}

// member finds what a pointer of one or two names means, the way of encoding/json, in a document without twin names.
func member(doc any, names []string) (string, bool) {
	for _, name := range names {
		switch v := doc.(type) {
		case map[string]any:
			var ok bool
			if doc, ok = v[name]; !ok {
				return "", false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || strconv.Itoa(i) != name || i < 0 || i >= len(v) {
				return "", false
			}
			doc = v[i]
		default:
			return "", false
		}
	}
	switch v := doc.(type) {
	case string:
		return v, v != ""
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

func FuzzPointer(f *testing.F) {
	for _, seed := range []string{`{"a":{"b":"x"}}`, `{"a":[{"0":1},2],"b":"\ud83d\ude00"}`, `[[1,2],"a"]`, `{"a":"\\\"}"}`, `{"a":1e9}`, `{`, ``, `"a"`} {
		f.Add(seed, "a", "0")
	}
	f.Fuzz(func(t *testing.T, content, first, second string) {
		in := row()
		in.Content, in.Key = []byte(content), []byte("fallback")
		escape := strings.NewReplacer("~", "~0", "/", "~1")
		r := newRouter(t, router.Config{Key: "/" + escape.Replace(first) + "/" + escape.Replace(second)})
		if content == "" {
			return
		}
		rec, err := r.Route(in, "sweep")
		if err != nil {
			return // too large
		}
		var doc any
		decoder := json.NewDecoder(strings.NewReader(content))
		decoder.UseNumber()
		if !json.Valid([]byte(content)) || decoder.Decode(&doc) != nil || twins(content) || !clean(content) {
			return // that it does not panic is all there is to check
		}
		want, ok := member(doc, []string{first, second})
		if !ok {
			want = "fallback"
		}
		assert.Equal(t, want, string(rec.Key), "content %q pointer %q %q", content, first, second)
	})
}

// twins reports whether the text may hold a name twice: encoding/json takes the last, we take the first.
func twins(content string) bool {
	seen := map[string]bool{}
	decoder := json.NewDecoder(strings.NewReader(content))
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		if name, ok := token.(string); ok {
			if seen[name] {
				return true
			}
			seen[name] = true
		}
	}
}

// clean reports whether encoding/json would leave strings as they are: it replaces what is no UTF-8.
func clean(content string) bool {
	return strings.ToValidUTF8(content, "") == content && !strings.Contains(content, `\u`)
}
