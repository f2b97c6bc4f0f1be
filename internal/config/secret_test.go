package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/config"
)

// canary stands for a secret in every place that takes one.
const canary = "c4n4ry"

const canaries = `source:
  primary: {password: c4n4ry-primary}
  replica: {address: "r:1", password: c4n4ry-replica}
kafka:
  sasl: {mechanism: plain, user: u, password: c4n4ry-sasl}
redis: {url: "redis://:c4n4ry-url@h:1/0", password: c4n4ry-redis}
console: {token: c4n4ry-console}
`

func TestSecretsNeverShow(t *testing.T) {
	t.Parallel()
	cfg := load(t, canaries, nil, nil)
	require.Equal(t, "c4n4ry-replica", cfg.Sources[0].Replica.Password.Reveal())
	require.Equal(t, []string{"redis://:c4n4ry-url@h:1/0"}, cfg.Redis.Reveal())
	printed, err := cfg.Print()
	require.NoError(t, err)
	assert.Equal(t, 6, strings.Count(printed, "***"), printed)
	texts := []string{printed}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, cfg), fmt.Sprintf(verb, *cfg), fmt.Sprintf(verb, cfg.Sources[0]),
			fmt.Sprintf(verb, cfg.Redis.URL[0]), fmt.Sprintf(verb, &cfg.Redis.URL[0]), fmt.Sprintf(verb, cfg.Sources[0].Replica.Password))
	}
	for _, value := range []any{cfg, cfg.Redacted()} {
		asJSON, err := json.Marshal(value)
		require.NoError(t, err)
		texts = append(texts, string(asJSON))
	}
	asYAML, err := yaml.Marshal(cfg)
	require.NoError(t, err)
	texts = append(texts, string(asYAML))
	for _, text := range texts {
		assert.NotContains(t, text, canary)
		assert.NotContains(t, strings.ToLower(text), fmt.Sprintf("%x", canary))
	}
}

// Whatever is wrong with a file, its secrets are not repeated by the complaint.
func TestComplaintsDoNotRepeatSecrets(t *testing.T) {
	t.Parallel()
	environ := []string{"PW=" + canary}
	for _, file := range []string{
		"console: {token: [c4n4ry]}\n",
		"console: {token: {c4n4ry: 1}}\n",
		"console: {token: \"c4n4ry\n",
		"console: {token: @c4n4ry}\n",
		"console:\n  token: c4n4ry: x\n",
		"console:\n\ttoken: c4n4ry\n",
		"console: {token: 'c4n4ry${', tokne: c4n4ry}\n",
		"redis: {url: 'http://:c4n4ry@h'}\n",
		"redis: {url: c4n4ry}\n",
		"redis: {url: [c4n4ry, {c4n4ry: x}]}\n",
		"redis: {url: 'c4n4ry://x'}\n",
		"limits: {in_flight: '${PW}'}\n",
		"source: {mode: '${PW}', tables: ['${PW}'], primary: {address: '${PW}'}}\nkafka: {brokers: '${PW}'}\n",
	} {
		_, err := config.Load(config.Input{File: write(t, file), Environ: environ})
		require.Error(t, err, file)
		assert.NotContains(t, err.Error(), canary, file)
	}
	for _, set := range []string{"c4n4ry", "console.token={c4n4ry", "redis.url=[c4n4ry", "redis.url=c4n4ry", "kafka.sasl.passwrod=c4n4ry"} {
		_, err := config.Load(config.Input{File: write(t, ""), Sets: []string{set}})
		if err != nil {
			assert.NotContains(t, err.Error(), canary, set)
		}
	}
}

func TestSecretURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                "",
		"redis://h:1/0":                   "redis://h:1/0",
		"redis://:pw@h:1/0":               "redis://:***@h:1/0",
		"redis://user:pw@h:1/0?db=1":      "redis://user:***@h:1/0?db=1",
		"redis://user:p%40w@h":            "redis://user:***@h",
		"redis://user:p@w@h":              "redis://user:***@h",
		"redis://pw@h":                    "redis://***@h",
		"redis://user:p/w@h":              "***",
		"redis://user:p?w@h":              "***",
		"redis://user:p#w@h":              "***",
		"redis://h?password=pw&db=2":      "redis://h?password=***&db=2",
		"redis://h?sentinel_password=pw":  "redis://h?sentinel_password=***",
		"redis+sentinel://:pw@a:1,b:2/m":  "redis+sentinel://:***@a:1,b:2/m",
		"rediss://a:1?skip_verify=false":  "rediss://a:1?skip_verify=false",
		"h:1":                             "h:1",
		"user:pw@h:1":                     "***",
		"redis://[::1]:6379/0":            "redis://[::1]:6379/0",
		"unix://user:pw@/run/redis.sock":  "unix://user:***@/run/redis.sock",
		"redis://:pw@h:1/0#and@something": "***",
	} {
		u := config.NewSecretURL(url)
		assert.Equal(t, want, u.String())
		assert.Equal(t, want != url, config.HasSecret(u), url)
	}
}

func TestSecretsFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	primary, replica := file("primary", "p 1\r\n"), file("replica", "p2")
	urls := file("urls", "a:1\nb:2\n")
	environ := []string{"DIR=" + dir, "OUTBOX_RELAY_CONSOLE__TOKEN_FILE=" + replica}
	cfg := load(t, `source:
  primary: {password_file: "${DIR}/primary"}
  replica: {address: "r:1", password_file: "`+replica+`"}
redis: {url_file: "`+urls+`"}
console: {token: overruled}
`, environ, nil)
	s := cfg.Sources[0]
	assert.Equal(t, "p 1", s.Primary.Password.Reveal())
	assert.Equal(t, "p2", s.Replica.Password.Reveal())
	assert.Equal(t, primary, s.Primary.PasswordFile)
	assert.Equal(t, []config.SecretURL{config.NewSecretURL("a:1"), config.NewSecretURL("b:2")}, cfg.Redis.URL)
	assert.Equal(t, "p2", cfg.Console.Token.Reveal(), "the environment's file overrules the file's value")

	printed, err := cfg.Print()
	require.NoError(t, err)
	assert.Contains(t, printed, "password_file: "+primary)
	assert.Equal(t, cfg, load(t, printed, environ, nil), "what is printed can be read back")

	own := load(t, `source:
  primary: {password_file: "`+primary+`"}
  replica: {address: "r:1", password: own}
`, nil, nil).Sources[0].Replica
	assert.Equal(t, "own", own.Password.Reveal())
	assert.Empty(t, own.PasswordFile)

	found := problems(t, "redis: {url_file: '"+file("bad", "a:1\nhttp://:c4n4ry@x\n")+"'}\n", nil, nil)
	require.Len(t, found, 1)
	assert.Equal(t, "1:19: redis.url_file: begins with an unknown scheme; use redis://, rediss:// or redis+sentinel://",
		strings.TrimPrefix(found[0].String(), ":"))

	for content, want := range map[string]string{"\n": "is empty", strings.Repeat("x", 70000): "is larger than"} {
		found := problems(t, "console: {token_file: '"+file("bad", content)+"'}\n", nil, nil)
		require.Len(t, found, 1)
		assert.Contains(t, found[0].Message, want)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, content string) string {
		file := write(t, content)
		require.NoError(t, os.Chmod(file, 0o644))
		return file
	}
	for _, tt := range []struct {
		name, file string
		in         config.Input
		want       []string
	}{
		{"Private", write(t, canaries), config.Input{}, nil},
		{"OpenWithoutSecrets", open(t, "log: {level: warn}\nconsole: {token: ''}\n"), config.Input{}, nil},
		{"OpenWithReferences", open(t, "console: {token: '${T}'}\n"), config.Input{Environ: []string{"T=t"}}, nil},
		{"Environment", open(t, ""), config.Input{Environ: []string{"OUTBOX_RELAY_CONSOLE__TOKEN=t"}}, nil},
		{"Open", open(t, smallest), config.Input{}, []string{"holds source.primary.password; chmod 640"}},
		{"OpenURL", open(t, "redis: {url: 'redis://:p@h:1'}\n"), config.Input{}, []string{"holds redis.url"}},
		{"Flag", write(t, ""), config.Input{Sets: []string{"console.token=t"}}, []string{"console.token is given by --set"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.File = tt.file
			result, err := config.Load(tt.in)
			require.NoError(t, err)
			require.Len(t, result.Warnings, len(tt.want), result.Warnings)
			for i, want := range tt.want {
				assert.Contains(t, result.Warnings[i], want)
			}
		})
	}
}
