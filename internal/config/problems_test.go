package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/config"
)

// Each file is wrong in one way; want is how its one problem begins after "line:column: ".
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, want string }{
		{"UnknownKey", "source:\n  primary:\n    adress: x:1\n", "3:5: source.primary.adress: unknown key; did you mean source.primary.address?"},
		{"UnknownSection", "kafak: {}\n", "1:1: kafak: unknown key; did you mean kafka?"},
		{"KeyOfAnotherSection", "brokers: [a:1]\n", "1:1: brokers: unknown key; did you mean kafka.brokers?"},
		{"KeyOfNowhere", "zzzzzzzzz: 1\n", "1:1: zzzzzzzzz: unknown key; remove it"},
		{"UnknownKeyInASource", "sources:\n- name: a\n- nmae: b\n", "3:3: sources[1].nmae: unknown key; did you mean sources[1].name?"},
		{"ListForText", "kafka: {client_id: [a]}\n", "1:20: kafka.client_id: must be text, not a list"},
		{"MappingForNumber", "limits:\n  in_flight:\n    a: 1\n", "3:5: limits.in_flight: must be a whole number, not a mapping"},
		{"TextForMapping", "kafka: localhost\n", "1:8: kafka: must be a mapping of settings, not a value"},
		{"TextForList", "kafka: {brokers: 'a:1'}\n", "1:18: kafka.brokers: must be a list; write [a:1]"},
		{"MappingForList", "kafka: {brokers: {a: 1}}\n", "1:18: kafka.brokers: must be a list, not a mapping"},
		{"MappingInList", "kafka: {brokers: [{a: 1}]}\n", "1:19: kafka.brokers[0]: must be text, not a mapping"},
		{"TextInListOfMappings", "router: {routes: [a]}\n", "1:19: router.routes[0]: must be a mapping of settings, not a value"},
		{"NothingInList", "kafka: {brokers: [~]}\n", "1:19: kafka.brokers[0]: an item without a value"},
		{"EmptyInList", "kafka: {brokers: ['']}\n", "1:19: kafka.brokers[0]: an item without a value"},
		{"NoWholeNumber", "limits: {in_flight: 1.5}\n", `1:21: limits.in_flight: "1.5" must be a whole number`},
		{"Negative", "source: {server_id: -1}\n", `1:21: source.server_id: "-1" must be a whole number from 0 to 4294967295`},
		{"NoNumber", "retry: {jitter: some}\n", `1:17: retry.jitter: "some" must be a number`},
		{"NoBool", "archive: {enabled: yes}\n", `1:20: archive.enabled: "yes" must be true or false`},
		{"NoUnit", "sweep: {interval: 30}\n", `1:19: sweep.interval: "30" needs a unit, such as 30s or 30ms`},
		{"NoDuration", "sweep: {interval: soon}\n", `1:19: sweep.interval: "soon" must be a duration such as 500ms`},
		{"NoSize", "limits: {in_flight_bytes: big}\n", `1:27: limits.in_flight_bytes: "big" must be a size such as 64MiB`},
		{"TooSmall", "limits: {in_flight_bytes: 1KiB}\n", `1:27: limits.in_flight_bytes: "1KiB" must be at least 64KiB`},
		{"TooLarge", "retry: {jitter: 1.5}\n", `1:17: retry.jitter: "1.5" must be at most 1`},
		{"TooShort", "leader: {lease: 1ms}\n", `1:17: leader.lease: "1ms" must be at least 3s`},
		{"TooLongInList", "retry:\n  backoff:\n  - 10s\n  - 1000h\n", `4:5: retry.backoff[1]: "1000h" must be at most 168h`},
		{"ZeroInList", "retry: {backoff: [0s]}\n", `1:19: retry.backoff[0]: "0s" must be at least 1ms`},
		{"NotOneOf", "source: {mode: steram}\n", `1:16: source.mode: "steram" must be one of auto, stream, sweep; did you mean stream?`},
		{"NotOneOfInList", "archive: {statuses: [pending]}\n", `1:22: archive.statuses[0]: "pending" must be one of sent, consumed`},
		{"ArchiveOfDiscarded", "archive: {statuses: [discarded]}\n", `1:22: archive.statuses[0]: "discarded" must be one of sent, consumed`},
		{"ArchiveOfDead", "archive: {statuses: [consumed, dead]}\n", `1:32: archive.statuses[1]: "dead" must be one of sent, consumed`},
		{"ArchiveOfFailed", "archive: {statuses: [failed]}\n", `1:22: archive.statuses[0]: "failed" must be one of sent, consumed`},
		{"UndefinedVariable", "source: {name: '${NOPE}'}\n", "1:16: source.name: the environment has no variable NOPE; set it"},
		{"OpenReference", "source: {name: 'a${b'}\n", `1:16: source.name: holds "${" that is no reference`},
		{"BothSources", "source: {name: a}\nsources: [{name: b}]\n", "1:9: source: source and sources are both set"},
		{"SameName", "sources:\n- {name: a}\n- {name: a}\n", `3:10: sources[1].name: "a" is another source's name too`},
		{"SameDefaultName", "sources:\n- {mode: auto}\n- {mode: sweep}\n", `3:3: sources[1].name: "default" is another source's name too`},
		{"BadName", "source: {name: 'a b'}\n", `1:16: source.name: "a b" must be 1 to 48 letters`},
		{"BadAddress", "source: {primary: {address: db}}\n", `1:29: source.primary.address: "db" must be host:port`},
		{"BadBroker", "kafka: {brokers: ['a:1', 'b:x']}\n", `1:26: kafka.brokers[1]: "b:x" must be host:port`},
		{"ReplicaWithoutAddress", "source: {replica: {user: r}}\n", "1:19: source.replica: has no address and so would be the primary again"},
		{"BadTable", "source: {tables: [local_message]}\n", `1:19: source.tables[0]: "local_message" must be database.table`},
		{"BadTableExpression", "source: {tables: ['app./a(/']}\n", `1:19: source.tables[0]: "app./a(/" holds no regular expression`},
		{"SameColumn", "source: {columns: {topic: msg_id}}\n", `1:27: source.columns.topic: "msg_id" is already the column for msg_id`},
		{"SameStatus", "source: {statuses: {sent: 0}}\n", "1:27: source.statuses.sent: 0 already means pending"},
		{"BadGlob", "router: {allow: ['a[']}\n", `1:18: router.allow[0]: "a[" is no glob`},
		{"NoMatch", "router: {routes: [{topic: x}]}\n", "1:19: router.routes[0]: has no match"},
		{"HoldingBackWithoutOrder", "router: {after_dead: hold, order: relaxed}\n", "1:22: router.after_dead: hold keeps back the later messages of a key, which router.order: relaxed does not do: use order: strict, or release"},
		{"BadPointerOfARoute", "router: {routes: [{match: '*', key: /a~}]}\n", `1:37: router.routes[0].key: "/a~" is no JSON pointer`},
		{"BadPlaceholder", "router: {routes: [{match: '*', topic: '{tpoic}'}]}\n", `1:39: router.routes[0].topic: "{tpoic}" holds a placeholder other than {topic}`},
		{"BadPointer", "router: {key: /a~b}\n", `1:15: router.key: "/a~b" is no JSON pointer`},
		{"BadVersion", "kafka: {version: latest}\n", `1:18: kafka.version: "latest" must be a version such as 3.6.0`},
		{"SASLWithoutMechanism", "kafka: {sasl: {user: u}}\n", "1:15: kafka.sasl.mechanism: is empty, so that the credentials"},
		{"SASLWithoutPassword", "kafka: {sasl: {mechanism: plain, user: u}}\n", "1:15: kafka.sasl.password: plain needs a password"},
		{"SASLWithoutToken", "kafka: {sasl: {mechanism: oauthbearer}}\n", "1:15: kafka.sasl.token_file: oauthbearer needs a token"},
		{"MessageLargerThanTheWindow", "kafka: {max_message_bytes: 1GiB}\n", "limits.in_flight_bytes: 64MiB is less than kafka.max_message_bytes (1GiB)"},
		{"BatchLargerThanItsBound", "limits: {unmarked: 10}\n", "1:9: limits.mark_batch: 1000 is more than limits.unmarked (10)"},
		{"RedisScheme", "redis: {url: http://x}\n", "1:14: redis.url: begins with an unknown scheme"},
		{"RedisNothing", "redis: {url: redis://}\n", "1:14: redis.url: names no server"},
		{"RedisNoPortAlone", "redis: {url: [b]}\n", "1:15: redis.url[0]: must be redis://host:port/0"},
		{"RedisNoPort", "redis: {url: [a:1, b]}\n", "1:20: redis.url[1]: must be redis://host:port/0"},
		{"ArchiveIsASource", "archive: {enabled: true}\nsource: {tables: [app.m, app.m_history]}\n", `2:26: source.tables[1]: "app.m_history" is what archive.table calls the history of app.m`},
		{"ArchiveElsewhere", "archive: {table: 'old.{table}'}\n", `1:18: archive.table: "old.{table}" must be a table's name`},
		{"ArchiveIntoItself", "archive: {table: '{table}'}\n", `1:18: archive.table: "{table}" must be another table`},
		{"AckTopic", "acks: {topic: 'a b'}\n", `1:15: acks.topic: "a b" is no topic's name`},
		{"AckGroupPlaceholder", "acks: {consumer_group: 'x-{sorce}'}\n", `1:24: acks.consumer_group: "x-{sorce}" holds a placeholder other than {source}`},
		{"AckTableItself", "acks: {table: '{table}'}\n", `1:15: acks.table: "{table}" must hold {table} and be another table`},
		{"AckGroupsNoMapping", "acks: {groups: [a]}\n", `1:16: acks.groups: must be a mapping such as {order-events: [points, logistics]}, not a list`},
		{"AckGroupsNoList", "acks: {groups: {orders: points}}\n", `1:25: acks.groups.orders: must be a list; write [points]`},
		{"AckGroupsEmpty", "acks: {groups: {orders: []}}\n", `1:17: acks.groups.orders: names no group`},
		{"AckGroupTwice", "acks: {groups: {orders: [a, b, a]}}\n", `1:32: acks.groups.orders[2]: "a" is named twice`},
		{"BadListen", "console: {listen: '9180'}\n", `1:19: console.listen: "9180" must be host:port`},
		{"BadPrefix", "console: {prefix: relay/}\n", `1:19: console.prefix: "relay/" must begin with a slash`},
		{"CAWithoutVerifying", "source: {primary: {ca_file: x}}\n", "1:19: source.primary.tls: ca_file has no effect with tls: preferred"},
		{"CertWithoutKey", "kafka: {tls: required, cert_file: x}\n", "1:14: kafka.tls: cert_file and key_file belong together"},
		{"CertWithoutTLS", "kafka: {cert_file: x, key_file: y}\n", "1:8: kafka.tls: cert_file has no effect with tls: off"},
		{"RedisCertWithoutTLS", "redis: {ca_file: x}\n", "1:8: redis: ca_file, cert_file and key_file have no effect with redis://"},
		{"MissingCA", "kafka: {tls: verify-ca, ca_file: /none}\n", "1:14: kafka.tls: read ca_file: open /none"},
		{"MissingSecretFile", "console:\n  token_file: /none\n", "2:15: console.token_file: open /none: no such file or directory; create it"},
		{"SecretTwice", "console: {token: a, token_file: b}\n", "1:33: console.token: token and token_file are both set"},
		{"DuplicateKey", "log: {}\nlog: {}\n", `2:1: is no YAML: mapping key "log" already defined`},
		{"Syntax", "kafka: [\n", "1:8: is no YAML: "},
		{"NoMapping", "- a\n", "1:1: must be a mapping such as"},
		{"TwoDocuments", "log: {}\n---\nkafka: {}\n", "3:"},
		{"UnknownAlias", "kafka: *x\n", "1:8: the alias *x has no anchor"},
		{"Deep", "kafka: " + strings.Repeat("[", 30) + strings.Repeat("]", 30), "1:28: nested deeper than any setting"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found := problems(t, tt.file, nil, nil)
			require.Len(t, found, 1, "%v", found)
			got := strings.TrimPrefix(found[0].String(), ":")
			assert.True(t, strings.HasPrefix(got, tt.want), got)
		})
	}
}

func TestProblemsOfTheEnvironmentAndFlags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		env, flag []string
		want      string
	}{
		{
			"Typo",
			[]string{"OUTBOX_RELAY_SOURCE__PRIMARY__ADRESS=x"},
			nil,
			"environment OUTBOX_RELAY_SOURCE__PRIMARY__ADRESS: source.primary.adress: unknown key; did you mean OUTBOX_RELAY_SOURCE__PRIMARY__ADDRESS?",
		},
		{
			"OneUnderscore",
			[]string{"OUTBOX_RELAY_KAFKA_BROKERS=x"},
			nil,
			"environment OUTBOX_RELAY_KAFKA_BROKERS: kafka_brokers: unknown key; did you mean OUTBOX_RELAY_KAFKA__BROKERS?",
		},
		{
			"Type",
			[]string{"OUTBOX_RELAY_LIMITS__IN_FLIGHT=many"},
			nil,
			"environment OUTBOX_RELAY_LIMITS__IN_FLIGHT: limits.in_flight: \"many\" must be a whole number",
		},
		{
			"NoYAML",
			[]string{"OUTBOX_RELAY_KAFKA__BROKERS=[a"},
			nil,
			"environment OUTBOX_RELAY_KAFKA__BROKERS: kafka.brokers: begins with a bracket but is no YAML",
		},
		{
			"NoYAMLBelowAnother",
			[]string{"OUTBOX_RELAY_KAFKA={client_id: x", "OUTBOX_RELAY_KAFKA__CLIENT_ID=y"},
			nil,
			"environment OUTBOX_RELAY_KAFKA: kafka: begins with a bracket but is no YAML",
		},
		{"BracketsInText", nil, []string{"kafka.version={x}"}, `--set kafka.version: kafka.version: "{x}" must be a version`},
		{"Flag", nil, []string{"log.levle=info"}, "--set log.levle: log.levle: unknown key; did you mean log.level?"},
		{"FlagWithoutValue", nil, []string{"s3cret"}, "--set: must be key.path=value"},
		{"FlagWithoutKey", nil, []string{"=x"}, "--set: must be key.path=value"},
		{"ListTooShort", nil, []string{"sources.3.name=x"}, "--set sources.3.name: sources: must be a list, not a mapping"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found := problems(t, "", tt.env, tt.flag)
			require.Len(t, found, 1, "%v", found)
			assert.True(t, strings.HasPrefix(found[0].String(), tt.want), found[0].String())
		})
	}
}

// A Service called outbox-relay makes Kubernetes put these into every container.
func TestKubernetesServiceLinksAreNoUnknownKeys(t *testing.T) {
	t.Parallel()
	cfg := load(t, "", []string{
		"OUTBOX_RELAY_SERVICE_HOST=10.0.0.1", "OUTBOX_RELAY_SERVICE_PORT=9180", "OUTBOX_RELAY_SERVICE_PORT_HTTP=9180",
		"OUTBOX_RELAY_PORT=tcp://10.0.0.1:9180", "OUTBOX_RELAY_PORT_9180_TCP=tcp://10.0.0.1:9180",
		"OUTBOX_RELAY_PORT_9180_TCP_PROTO=tcp", "OUTBOX_RELAY_PORT_9180_TCP_PORT=9180", "OUTBOX_RELAY_PORT_9180_TCP_ADDR=10.0.0.1",
	}, nil)
	assert.Equal(t, config.Defaults(), cfg)
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	file := write(t, "log: {level: loud}\nkafka:\n  borkers: []\nsweep: {batch: x, grace: 1}\nsource: {tables: [a]}\n")
	_, err := config.Load(config.Input{File: file, Environ: []string{"OUTBOX_RELAY_X=1"}})
	require.Error(t, err)
	assert.Equal(t, strings.ReplaceAll(`6 problems in the configuration:
  environment OUTBOX_RELAY_X: x: unknown key; remove it, or see outbox-relay config schema for the keys there are
  FILE:1:14: log.level: "loud" must be one of trace, debug, info, warn, error
  FILE:3:3: kafka.borkers: unknown key; did you mean kafka.brokers?
  FILE:4:16: sweep.batch: "x" must be a whole number
  FILE:4:26: sweep.grace: "1" needs a unit, such as 1s or 1ms
  FILE:5:19: source.tables[0]: "a" must be database.table; a part between slashes is a regular expression, as in app./local_message_\d+/`,
		"FILE", file), err.Error())
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	t.Parallel()
	cfg := load(t, `sources:
- name: a
  primary: &p {address: "a:1", user: u, password: x}
- name: b
  primary:
    <<: *p
    address: "b:1"
  tables: &t [a.b]
- {name: c, tables: *t, primary: {<<: [*p]}}
`, nil, nil)
	b, c := cfg.Sources[1], cfg.Sources[2]
	assert.Equal(t, "b:1/u/x", fmt.Sprintf("%s/%s/%s", b.Primary.Address, b.Primary.User, b.Primary.Password.Reveal()))
	assert.Equal(t, []string{"a.b"}, c.Tables)
	assert.Equal(t, "a:1", c.Primary.Address)
}

func FuzzLoadNeverPanics(f *testing.F) {
	f.Add(smallest, "source.name=x")
	f.Add("a: &x [*x]\nb: {<<: *x}\n? [a]\n: !t |\n  x\n", "sources.0=[{")
	f.Add("source: ${A}${\n", "router.routes.0.match={a")
	f.Fuzz(func(t *testing.T, file, set string) {
		result, err := config.Load(config.Input{File: write(t, file), Sets: []string{set}})
		if (err == nil) != (result != nil) {
			t.Fatalf("result %v, error %v", result, err)
		}
	})
}
