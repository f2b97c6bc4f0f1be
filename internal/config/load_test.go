package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/config"
)

const smallest = `source:
  primary: {address: "127.0.0.1:3306", user: relay, password: secret}
  tables: [app.local_message]
kafka:
  brokers: ["127.0.0.1:9092"]
redis:
  url: redis://127.0.0.1:6379/0
`

// write puts a file that only its owner can read into a folder of its own.
func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "relay.yaml")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

func load(t *testing.T, content string, environ, sets []string) *config.Config {
	t.Helper()
	result, err := config.Load(config.Input{File: write(t, content), Environ: environ, Sets: sets})
	require.NoError(t, err)
	return result.Config
}

// problems returns what Load complains about, without the file's name.
func problems(t *testing.T, content string, environ, sets []string) []config.Problem {
	t.Helper()
	_, err := config.Load(config.Input{File: write(t, content), Environ: environ, Sets: sets})
	var found *config.Error
	require.ErrorAs(t, err, &found)
	for i := range found.Problems {
		if found.Problems[i].Line > 0 {
			found.Problems[i].Origin = ""
		}
	}
	return found.Problems
}

func TestSmallestFile(t *testing.T) {
	t.Parallel()
	want := config.Defaults()
	want.Sources[0].Primary.Password = config.NewSecret("secret")
	assert.Equal(t, want, load(t, smallest, nil, nil))
}

func TestNoFileIsTheDefaults(t *testing.T) {
	t.Parallel()
	result, err := config.Load(config.Input{Search: []string{filepath.Join(t.TempDir(), "none.yaml")}})
	require.NoError(t, err)
	assert.Equal(t, config.Defaults(), result.Config)
	assert.Empty(t, result.File)
	require.Len(t, result.Warnings, 1)
	assert.Contains(t, result.Warnings[0], "every setting has its default")
	assert.Equal(t, config.Defaults(), load(t, "# nothing but a comment\n", nil, nil))
	assert.Equal(t, config.Defaults(), load(t, "source:\nkafka: ~\nsources: []\n", nil, nil))
}

func TestFileSearch(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"outbox-relay.yaml", "/etc/outbox-relay/outbox-relay.yaml"}, config.SearchPaths())
	first, second := write(t, "log: {level: warn}"), write(t, "log: {level: error}")
	missing := filepath.Join(t.TempDir(), "missing.yaml")

	result, err := config.Load(config.Input{Search: []string{missing, first, second}})
	require.NoError(t, err)
	assert.Equal(t, "warn", result.Config.Log.Level)
	assert.Equal(t, first, result.File)

	_, err = config.Load(config.Input{File: missing, Search: []string{first}})
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "--config")
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	const file = "source: {primary: {address: 'file:1', user: file, password: file}}\nlog: {level: warn}\n"
	environ := []string{
		"OUTBOX_RELAY_SOURCE__PRIMARY__ADDRESS=env:1", "OUTBOX_RELAY_SOURCE__PRIMARY__PASSWORD=en${v",
		"OUTBOX_RELAY_KAFKA__BROKERS=a:1, b:2", "PATH=/bin", "OUTBOX_RELAY_RETRY__BACKOFF=[1s, 2s]",
	}
	sets := []string{"source.primary.address=set:0", "source.primary.address=set:1", "source.columns={key: ref, trace: tp}"}
	cfg := load(t, file, environ, sets)
	source := cfg.Sources[0]
	assert.Equal(t, "set:1", source.Primary.Address)
	assert.Equal(t, "en${v", source.Primary.Password.Reveal(), "the environment's values are literal")
	assert.Equal(t, "file", source.Primary.User)
	assert.Equal(t, "warn", cfg.Log.Level)
	assert.Equal(t, "json", load(t, "", nil, []string{"log.format=json"}).Log.Format)
	assert.Equal(t, []string{"a:1", "b:2"}, cfg.Kafka.Brokers)
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second}, cfg.Retry.Backoff)
	assert.Equal(t, "ref", source.Columns.Key)
	assert.Equal(t, "msg_content", source.Columns.Content)
}

// A setting of text takes brackets as text, however often it is given.
func TestBracketsInText(t *testing.T) {
	t.Parallel()
	cfg := load(t, "archive: {table: '{table}_old'}\n",
		[]string{"OUTBOX_RELAY_ACKS__CONSUMER_GROUP={source}", "OUTBOX_RELAY_CONSOLE__TOKEN=[t]"},
		[]string{"acks.consumer_group={source}", "archive.table={table}_h"})
	assert.Equal(t, "{source}", cfg.Acks.ConsumerGroup)
	assert.Equal(t, "{table}_h", cfg.Archive.Table)
	assert.Equal(t, "[t]", cfg.Console.Token.Reveal())
}

func TestSeveralSources(t *testing.T) {
	t.Parallel()
	const file = `sources:
  - name: a
    primary: {address: "a:3306"}
  - name: b
    primary: {address: "b:3306"}
`
	cfg := load(t, file, []string{"OUTBOX_RELAY_SOURCES__1__PRIMARY__PASSWORD=pb", "OUTBOX_RELAY_SOURCES__0__PRIMARY__PASSWORD=pa"},
		[]string{"sources[2].name=c", "sources.2.tables=x.y"})
	require.Len(t, cfg.Sources, 3)
	assert.Equal(t, "pa", cfg.Sources[0].Primary.Password.Reveal())
	assert.Equal(t, "pb", cfg.Sources[1].Primary.Password.Reveal())
	assert.Equal(t, "relay", cfg.Sources[1].Primary.User)
	assert.Equal(t, []string{"x.y"}, cfg.Sources[2].Tables)

	b, err := cfg.Source("b")
	require.NoError(t, err)
	assert.Equal(t, "b:3306", b.Primary.Address)
	_, err = cfg.Source("")
	require.ErrorContains(t, err, "--source a|b|c")
	_, err = cfg.Source("x")
	require.ErrorContains(t, err, `no source "x"`)
	only, err := config.Defaults().Source("")
	require.NoError(t, err)
	assert.Equal(t, "default", only.Name)
}

func TestReplicaInheritsFromThePrimary(t *testing.T) {
	t.Parallel()
	const file = `source:
  primary: {address: "p:1", user: u, password: pw, tls: verify-ca}
  replica: {address: "r:1", tls: required}
`
	source := load(t, file, nil, nil).Sources[0]
	want := config.Server{Address: "r:1", User: "u", Password: config.NewSecret("pw"), TLS: "required"}
	assert.Equal(t, &want, source.Replica)
	assert.Equal(t, want, source.Reader())
	assert.Equal(t, config.Defaults().Sources[0].Primary, config.Defaults().Sources[0].Reader())
}

func TestZeroMeansDefault(t *testing.T) {
	t.Parallel()
	cfg := load(t, `source: {name: "", statuses: {pending: 9, sent: 0}, tables: []}
limits: {in_flight: 0, in_flight_bytes: 0, mark_delay: 0s}
retry: {jitter: 0, backoff: []}
console: {listen: ""}
`, []string{"OUTBOX_RELAY_SWEEP__BATCH="}, nil)
	want := config.Defaults()
	want.Sources[0].Statuses.Pending, want.Sources[0].Statuses.Sent = 9, 0
	want.Console.Listen = ""
	assert.Equal(t, want, cfg)
}

func TestReferences(t *testing.T) {
	t.Parallel()
	environ := []string{"PW=a: ${b} #c", "N=7", "EMPTY=", "BROKERS=x:1,y:2", "CONSOLE_TOKEN=t"}
	cfg := load(t, `source: {primary: {user: "u-${N}${EMPTY}-$x-$${N}", password: "${PW}"}}
kafka: {brokers: "${BROKERS}"}
limits: {in_flight: "${N}"}
console: {token: "${CONSOLE_TOKEN}"}
`, environ, nil)
	assert.Equal(t, "u-7-$x-${N}", cfg.Sources[0].Primary.User)
	assert.Equal(t, "a: ${b} #c", cfg.Sources[0].Primary.Password.Reveal(), "neither YAML nor a reference again")
	assert.Equal(t, []string{"x:1", "y:2"}, cfg.Kafka.Brokers)
	assert.Equal(t, 7, cfg.Limits.InFlight)
	assert.Equal(t, "t", cfg.Console.Token.Reveal())
}

func TestScalarsKeepTheirText(t *testing.T) {
	t.Parallel()
	cfg := load(t, `source: {name: 007, primary: {password: 0123, user: true, tls: off}}
kafka:
  client_id: |-
    relay-1
`, nil, nil)
	assert.Equal(t, "0123", cfg.Sources[0].Primary.Password.Reveal())
	assert.Equal(t, "true", cfg.Sources[0].Primary.User)
	assert.Equal(t, "007", cfg.Sources[0].Name)
	assert.Equal(t, "relay-1", cfg.Kafka.ClientID)
}
