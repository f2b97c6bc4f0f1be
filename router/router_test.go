package router_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
)

func row() *outbox.Row {
	return &outbox.Row{
		ID: 7, MsgID: "m-1", Topic: "orders", Content: []byte(`{"order_id": 42}`), Created: "2026-01-02 03:04:05",
	}
}

func newRouter(t testing.TB, cfg router.Config) *router.Router {
	t.Helper()
	r, err := router.New(cfg)
	require.NoError(t, err)
	return r
}

func header(rec *router.Record, name string) string {
	for _, h := range rec.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return "(none)"
}

func TestRecordIsWhatTheInterfaceSays(t *testing.T) {
	t.Parallel()
	in := row()
	in.Key = []byte("customer-9")
	in.TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	in.Headers = []byte(`{"z": "last", "a": "first"}`)
	rec, err := newRouter(t, router.Config{Source: "shop"}).Route(in, "srv/binlog.000001:4/1")
	require.NoError(t, err)
	want := &router.Record{
		Topic: "orders", Key: []byte("customer-9"), Value: []byte(`{"order_id": 42}`),
		Headers: []router.Header{
			{Key: "msg_id", Value: []byte("m-1")},
			{Key: "outbox_source", Value: []byte("shop")},
			{Key: "outbox_position", Value: []byte("srv/binlog.000001:4/1")},
			{Key: "outbox_created", Value: []byte("2026-01-02 03:04:05")},
			{Key: "traceparent", Value: []byte(in.TraceParent)},
			{Key: "a", Value: []byte("first")},
			{Key: "z", Value: []byte("last")},
		},
	}
	assert.Empty(t, cmp.Diff(want, rec))
}

func TestStreamAndSweeperDifferInThePositionOnly(t *testing.T) {
	t.Parallel()
	r := newRouter(t, router.Config{Source: "shop", Key: "/order_id"})
	in := row()
	in.Headers = []byte(`{"b":"1","a":"2","c":3}`)
	stream, err := r.Route(in, "srv/binlog.000001:4/1")
	require.NoError(t, err)
	for range 20 { // what depended on a map's order would show
		sweep, err := r.Route(in, "sweep")
		require.NoError(t, err)
		assert.Equal(t, "sweep", header(sweep, words.HeaderPosition))
		sweep.Headers[2] = stream.Headers[2]
		assert.Empty(t, cmp.Diff(stream, sweep))
	}
}

func TestHeaderValuesDoNotShareRoomToGrow(t *testing.T) {
	t.Parallel()
	rec, err := newRouter(t, router.Config{}).Route(row(), "sweep")
	require.NoError(t, err)
	for _, h := range rec.Headers {
		assert.Equal(t, len(h.Value), cap(h.Value), h.Key)
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	routes := []router.Route{
		{Match: "order-*", Topic: "prod.{topic}"},
		{Match: "order-eu", Topic: "never reached"[:5]},
		{Match: "audit", Topic: "compliance"},
		{Match: "keyed"},
		{Match: "[ab]?", Topic: "{topic}.{topic}"},
	}
	for _, c := range []struct{ name, topic, want string }{
		{"FirstMatchWins", "order-eu", "prod.order-eu"},
		{"Fixed", "audit", "compliance"},
		{"OwnTopicWithoutTarget", "keyed", "keyed"},
		{"MacroTwice", "a1", "a1.a1"},
		{"NoMatch", "payments", "payments"},
		{"MatchesWhole", "audit2", "audit2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRouter(t, router.Config{Routes: routes})
			in := row()
			in.Topic = c.topic
			assert.Equal(t, c.want, r.Topic(in))
			rec, err := r.Route(in, "sweep")
			require.NoError(t, err)
			assert.Equal(t, c.want, rec.Topic)
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-payload"
	for _, c := range []struct {
		name   string
		cfg    router.Config
		change func(*outbox.Row)
		want   string
	}{
		{"ErrTopicEmpty", router.Config{}, func(r *outbox.Row) { r.Topic = "" }, words.RefusedTopicInvalid},
		{"ErrTopicSpace", router.Config{}, func(r *outbox.Row) { r.Topic = "a b" }, words.RefusedTopicInvalid},
		{"ErrTopicUTF8", router.Config{}, func(r *outbox.Row) { r.Topic = "订单" }, words.RefusedTopicInvalid},
		{"ErrTopicDots", router.Config{}, func(r *outbox.Row) { r.Topic = ".." }, words.RefusedTopicInvalid},
		{"ErrTopicLong", router.Config{}, func(r *outbox.Row) { r.Topic = strings.Repeat("a", 250) }, words.RefusedTopicInvalid},
		{"ErrRoutedTopicLong", router.Config{Routes: []router.Route{{Match: "*", Topic: "{topic}{topic}"}}}, func(r *outbox.Row) { r.Topic = strings.Repeat("a", 125) }, words.RefusedTopicInvalid},
		{"ErrKafkasOwn", router.Config{}, func(r *outbox.Row) { r.Topic = "__consumer_offsets" }, words.RefusedTopicNotAllowed},
		{"ErrNotAllowed", router.Config{Allow: []string{"pay*", "ord"}}, func(*outbox.Row) {}, words.RefusedTopicNotAllowed},
		{"ErrAllowIsForTheTarget", router.Config{Allow: []string{"orders"}, Routes: []router.Route{{Match: "orders", Topic: "elsewhere"}}}, func(*outbox.Row) {}, words.RefusedTopicNotAllowed},
		{"ErrContentEmpty", router.Config{}, func(r *outbox.Row) { r.Content = nil }, words.RefusedContentEmpty},
		{"ErrMsgIDEmpty", router.Config{}, func(r *outbox.Row) { r.MsgID = "" }, words.RefusedMsgIDEmpty},
		{"ErrTooLarge", router.Config{MaxMessageBytes: 1000}, func(r *outbox.Row) { r.Content = []byte(secret + strings.Repeat("x", 900)) }, words.RefusedTooLarge},
		{"ErrTooLargeByKey", router.Config{MaxMessageBytes: 1000}, func(r *outbox.Row) { r.Key = []byte(secret + strings.Repeat("x", 900)) }, words.RefusedTooLarge},
		{"ErrHeadersTooLarge", router.Config{MaxMessageBytes: 1000}, func(r *outbox.Row) { r.Headers = []byte(`{"h":"` + strings.Repeat("x", 900) + `"}`) }, words.RefusedHeadersTooLarge},
		{"ErrHeadersNoJSON", router.Config{}, func(r *outbox.Row) { r.Headers = []byte(secret) }, words.RefusedHeadersInvalid},
		{"ErrHeadersArray", router.Config{}, func(r *outbox.Row) { r.Headers = []byte(`["` + secret + `"]`) }, words.RefusedHeadersInvalid},
		{"ErrHeadersCut", router.Config{}, func(r *outbox.Row) { r.Headers = []byte(`{"a": "` + secret) }, words.RefusedHeadersInvalid},
		{"ErrHeadersTrailing", router.Config{}, func(r *outbox.Row) { r.Headers = []byte(`{} {}`) }, words.RefusedHeadersInvalid},
		{"ErrHeaderNested", router.Config{}, func(r *outbox.Row) { r.Headers = []byte(`{"` + secret + `": {"x": 1}}`) }, words.RefusedHeadersInvalid},
		{"ErrHeaderList", router.Config{}, func(r *outbox.Row) { r.Headers = []byte(`{"a": ["` + secret + `"]}`) }, words.RefusedHeadersInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := row()
			c.change(in)
			rec, err := newRouter(t, c.cfg).Route(in, "sweep")
			assert.Nil(t, rec)
			var refusal *router.Refusal
			require.ErrorAs(t, err, &refusal)
			assert.Equal(t, c.want, refusal.Reason)
			assert.Contains(t, words.Refusals(), refusal.Reason)
			assert.NotContains(t, refusal.Text, secret)
			assert.Less(t, len(refusal.Text), 300, "a person reads it")
			assert.Equal(t, refusal.Text, err.Error())
		})
	}
}

func TestAllow(t *testing.T) {
	t.Parallel()
	r := newRouter(t, router.Config{Allow: []string{"pay*", "__mine"}})
	for topic, want := range map[string]bool{"payments": true, "__mine": true, "orders": false, "__other": false} {
		in := row()
		in.Topic = topic
		_, err := r.Route(in, "sweep")
		assert.Equal(t, want, err == nil, topic)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, headers, trace string
		want                 map[string]string
	}{
		{"Scalars", `{"s":"x","n":1.50,"t":true,"f":false,"z":null,"e":""}`, "", map[string]string{"s": "x", "n": "1.50", "t": "true", "f": "false", "z": "(none)", "e": ""}},
		{"Escapes", `{"a\u0062":"q\"\u00e9\n"}`, "", map[string]string{"ab": "q\"é\n"}},
		{
			"ReservedAreTheRelays", `{"msg_id":"forged","outbox_source":"forged","outbox_position":"forged","outbox_x":"forged","MSG_ID":"mine"}`, "",
			map[string]string{"msg_id": "m-1", "outbox_source": "shop", "outbox_position": "sweep", "outbox_x": "(none)", "MSG_ID": "mine"},
		},
		{"TraceColumnWins", `{"traceparent":"header"}`, "column", map[string]string{"traceparent": "column"}},
		{"TraceHeaderWithoutColumn", `{"traceparent":"header"}`, "", map[string]string{"traceparent": "header"}},
		{"Null", `null`, "", nil},
		{"Blank", "  ", "", nil},
		{"Empty", `{}`, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := row()
			in.Headers, in.TraceParent = []byte(c.headers), c.trace
			rec, err := newRouter(t, router.Config{Source: "shop"}).Route(in, "sweep")
			require.NoError(t, err)
			seen := map[string]bool{}
			for _, h := range rec.Headers {
				assert.False(t, seen[h.Key], "header %s twice", h.Key)
				seen[h.Key] = true
			}
			if c.want == nil {
				assert.Len(t, rec.Headers, 4)
			}
			for name, value := range c.want {
				assert.Equal(t, value, header(rec, name), name)
			}
		})
	}
}

func TestNewReportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	_, err := router.New(router.Config{
		Key:    "order_id",
		Routes: []router.Route{{Match: "[", Topic: "a b", Key: "/~2"}, {Match: "", Topic: "ok"}, {Match: "x", Key: "customer"}},
		Allow:  []string{"a", "["}, MaxMessageBytes: -1, KeyColumn: "msg_key",
	})
	require.Error(t, err)
	for _, want := range []string{
		"router.key: ", "router.routes[0]: match: ", "topic \"a b\"", "key: JSON pointer \"/~2\"", "router.routes[1]: match: ",
		"router.routes[2]: key: ", "router.allow[1]: ", "max_message_bytes",
	} {
		assert.Contains(t, err.Error(), want)
	}
}

func TestSizeBoundsTheLimit(t *testing.T) {
	t.Parallel()
	in := row()
	rec, err := newRouter(t, router.Config{}).Route(in, "sweep")
	require.NoError(t, err)
	_, err = newRouter(t, router.Config{MaxMessageBytes: rec.Size()}).Route(in, "sweep")
	require.NoError(t, err)
	_, err = newRouter(t, router.Config{MaxMessageBytes: rec.Size() - 1}).Route(in, "sweep")
	var refusal *router.Refusal
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, words.RefusedTooLarge, refusal.Reason)
}

func TestCheckTopicName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "A.b_c-9", "...", strings.Repeat("a", 249)} {
		require.NoError(t, router.CheckTopicName(name), name)
	}
	for _, name := range []string{"", ".", "..", "a/b", "a b", "a\x00", "é", strings.Repeat("a", 250)} {
		require.Error(t, router.CheckTopicName(name), name)
	}
}

func BenchmarkRoute(b *testing.B) {
	plain, keyed, headers := row(), row(), row()
	keyed.Content = []byte(`{"items":[{"sku":"a","n":1},{"sku":"b","n":2}],"note":"` + strings.Repeat("x", 200) + `","order_id":42}`)
	headers.Headers = []byte(`{"tenant":"acme","type":"created"}`)
	for _, c := range []struct {
		name string
		cfg  router.Config
		row  *outbox.Row
	}{
		{"Plain", router.Config{Source: "shop"}, plain},
		{"Routed", router.Config{Source: "shop", Routes: []router.Route{{Match: "pay*"}, {Match: "ord*", Topic: "prod.{topic}"}}}, plain},
		{"Pointer", router.Config{Source: "shop", Key: "/order_id"}, keyed},
		{"Headers", router.Config{Source: "shop"}, headers},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newRouter(b, c.cfg)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Route(c.row, "sweep"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
