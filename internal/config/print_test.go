package config_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/outbox-relay/internal/config"
)

// everything is the file with every setting at its default, as operators know it. It is written by hand: a default or a
// name changes here only together with a line in the CHANGELOG.
const everything = `source:
  name: default
  primary:
    address: "127.0.0.1:3306"
    user: relay
    password: ""
    tls: preferred
  replica: null
  server_id: 0
  tables: [app.local_message]
  mode: auto
  columns: {id: id, msg_id: msg_id, topic: topic, content: msg_content, status: status, retry_count: retry_count,
            next_retry_time: next_retry_time, create_time: create_time, update_time: update_time,
            key: msg_key, headers: headers, last_error: last_error, trace: trace_parent}
  statuses: {pending: 0, sent: 1, failed: 2, consumed: 3, dead: 4, discarded: 5}
router:
  key: ""
  routes: []
  allow: []
  order: strict
  after_dead: release
kafka:
  brokers: ["127.0.0.1:9092"]
  client_id: outbox-relay
  version: ""
  tls: off
  sasl: {mechanism: "", user: "", password: ""}
  compression: none
  max_message_bytes: 1MiB
  create_topics: false
redis:
  url: redis://127.0.0.1:6379/0
  prefix: "outbox-relay:"
checkpoint: {interval: 1s, start: now}
limits: {in_flight: 20000, in_flight_bytes: 64MiB, unmarked: 200000, mark_batch: 1000, mark_delay: 20ms}
retry: {backoff: [10s, 30s, 1m, 5m], jitter: 0.2, max_retries: 16}
sweep: {interval: 30s, batch: 500, grace: 5s}
leader: {lock: mysql, lease: 10s}
acks: {enabled: false, topic: "", consumer_group: "outbox-relay-{source}-acks", groups: {}, table: "{table}_ack"}
archive: {enabled: false, after: 168h, statuses: [consumed], table: "{table}_history", batch: 500, interval: 10m}
console: {listen: "127.0.0.1:9180", token: "", prefix: ""}
log: {level: info, format: auto}
shutdown: {timeout: 25s}
`

func TestEverySettingHasItsPromisedDefault(t *testing.T) {
	t.Parallel()
	assert.Equal(t, config.Defaults(), load(t, everything, nil, nil))
	// A default that differed would be hidden by the values given above being the same; so each is printed as well.
	printed, err := config.Defaults().Print()
	require.NoError(t, err)
	for _, line := range []string{
		`address: "127.0.0.1:3306"`, "user: relay", "tls: preferred", "replica: null", "server_id: 0", "- app.local_message",
		"mode: auto", "content: msg_content", "trace: trace_parent", "discarded: 5", "order: strict", "after_dead: release",
		`- "127.0.0.1:9092"`, "client_id: outbox-relay", "compression: none", "max_message_bytes: 1MiB", "create_topics: false",
		"url: redis://127.0.0.1:6379/0", `prefix: "outbox-relay:"`, "interval: 1s", "start: now", "in_flight: 20000",
		"in_flight_bytes: 64MiB", "unmarked: 200000", "mark_batch: 1000", "mark_delay: 20ms", "- 10s", "- 30s", "- 1m", "- 5m",
		"jitter: 0.2", "max_retries: 16", "interval: 30s", "batch: 500", "grace: 5s", "lock: mysql", "lease: 10s",
		"enabled: false", "after: 168h", "- consumed", `table: "{table}_history"`, "interval: 10m", `listen: "127.0.0.1:9180"`,
		"level: info", "format: auto", "timeout: 25s",
	} {
		assert.Contains(t, printed, line+"\n")
	}
}

// Whatever text a setting holds, what is printed reads back as the same.
func TestPrintReadsBack(t *testing.T) {
	t.Parallel()
	file := write(t, "")
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(
			rapid.String(),
			rapid.StringOf(rapid.SampledFrom([]rune(": #'\"{}[]&*!|>%@`-?,~${}\\\n\t0a"))),
			rapid.SampledFrom([]string{"off", "yes", "null", "~", "0x1f", "1e3", "2020-01-01", "<<", "=", ".inf", "${A}", "$${A}", "1_0", "- a", "true"}),
		).Filter(func(s string) bool {
			return s != "" && !strings.ContainsAny(s, "\r\x00\u0085\u2028\u2029\ufeff") && printable(s)
		})
		cfg := config.Defaults()
		cfg.Kafka.ClientID = text.Draw(rt, "client id")
		cfg.Sources[0].Primary.User = text.Draw(rt, "user")
		cfg.Router.Key = "k" + text.Draw(rt, "key")
		cfg.Retry.Jitter = rapid.Float64Range(0.001, 1).Draw(rt, "jitter")
		cfg.Limits.InFlightBytes = config.Size(rapid.Int64Range(1<<20, 1<<36).Draw(rt, "bytes"))
		cfg.Sweep.Interval = time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(rt, "interval"))
		printed, err := cfg.Print()
		require.NoError(rt, err)
		require.NoError(rt, os.WriteFile(file, []byte(printed), 0o600))
		result, err := config.Load(config.Input{File: file})
		require.NoError(rt, err, printed)
		require.Equal(rt, cfg, result.Config, printed)
	})
}

// printable leaves out what YAML cannot hold: control characters other than tab and newline.
func printable(s string) bool {
	for _, r := range s {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0xd800 && r < 0xe000 || r == 0xfffd || r == 0xfffe || r == 0xffff {
			return false
		}
	}
	return true
}

func TestPrintSeveralSources(t *testing.T) {
	t.Parallel()
	cfg := load(t, "sources:\n- {name: a, replica: {address: 'r:1'}}\n- {name: b}\nrouter: {routes: [{match: x, topic: 'p.{topic}'}]}\n", nil, nil)
	printed, err := cfg.Print()
	require.NoError(t, err)
	assert.Equal(t, cfg, load(t, printed, nil, nil))
	asJSON, err := json.Marshal(cfg.Redacted())
	require.NoError(t, err)
	assert.Contains(t, string(asJSON), `"routes":[{"key":"","match":"x","topic":"p.{topic}"}]`)
}

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Size{"0": 0, "1": 1, "1024": config.KiB, "64MiB": 64 * config.MiB, "64 mib": 64 * config.MiB, "1MB": 1000000, "1.5KiB": 1536, "2GiB": 2 * config.GiB} {
		size, err := config.ParseSize(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, size, text)
	}
	for _, text := range []string{"", "x", "-1", "1XB", "99999999999GiB", "1 2"} {
		_, err := config.ParseSize(text)
		require.Error(t, err, text)
	}
	for size, want := range map[config.Size]string{0: "0", 1000: "1000", 1024: "1KiB", 1536: "1536", 64 << 20: "64MiB", 3 << 30: "3GiB"} {
		assert.Equal(t, want, size.String())
	}
}

func TestSchemaKnowsEverySetting(t *testing.T) {
	t.Parallel()
	raw, err := config.Schema()
	require.NoError(t, err)
	var root map[string]any
	require.NoError(t, json.Unmarshal(raw, &root))
	assert.Equal(t, false, root["additionalProperties"])
	known := make(map[string]bool)
	collect(root, "", known)
	defaults := config.Defaults().Redacted()
	var missing []string
	compare(defaults, "", func(path string) {
		if !known[path] {
			missing = append(missing, path)
		}
	})
	assert.Empty(t, missing)
	for _, path := range []string{"source.primary.password_file", "source.replica.address", "sources[].name", "router.routes[].match", "redis.url_file"} {
		assert.True(t, known[path], path)
	}
	for _, want := range []string{`"default": "64MiB"`, `"verify-identity"`, `"maximum": 1000000`} {
		assert.Contains(t, string(raw), want)
	}
}

// collect gathers the paths that a schema describes, each with a description.
func collect(schema map[string]any, prefix string, into map[string]bool) {
	if items, ok := schema["items"].(map[string]any); ok {
		collect(items, strings.TrimSuffix(prefix, ".")+"[].", into)
	}
	if alternatives, ok := schema["anyOf"].([]any); ok {
		for _, a := range alternatives {
			if alternative, ok := a.(map[string]any); ok {
				collect(alternative, prefix, into)
			}
		}
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return
	}
	for name, value := range properties {
		property, ok := value.(map[string]any)
		if !ok {
			continue
		}
		text, _ := property["description"].(string)
		into[prefix+name] = text != ""
		collect(property, prefix+name+".", into)
	}
}

func compare(values map[string]any, prefix string, visit func(string)) {
	for name, value := range values {
		visit(prefix + name)
		if inner, ok := value.(map[string]any); ok {
			compare(inner, prefix+name+".", visit)
		}
	}
}
