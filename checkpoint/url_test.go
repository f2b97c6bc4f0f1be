package checkpoint_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/checkpoint"
)

const canary = "c4nary-s3cret"

func TestGoodURLs(t *testing.T) {
	t.Parallel()
	for _, urls := range [][]string{
		{"redis://127.0.0.1:6379/0"},
		{"redis://localhost"},
		{" redis://user:pa%2Fss@host:6380/15 "},
		{"redis://:" + canary + "@[::1]:6379"},
		{"rediss://host/1?skip_verify=true"},
		{"redis+sentinel://a:26379,b,c:1/main/2?sentinel_user=u&sentinel_password=p"},
		{"rediss+sentinel://a/main"},
		{"redis+cluster://endpoint"},
		{"redis://a,b,c"},
		{"redis://a:1", "redis://b:2", "redis://c:3"},
		{"a:1", "b:2", "[::1]:3"},
		{"unix:///run/redis.sock"},
		{"unix://u:p@/run/redis.sock?db=3"},
	} {
		require.NoError(t, checkpoint.Config{URLs: urls}.Validate(), urls)
	}
}

func TestBadURLsSayWhatToDoAndKeepTheSecret(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                  "begins with redis://",
		"http://" + canary + "@h":           "begins with redis://",
		"redis://u:" + canary + "/x@h:6379": "percent-encode",
		"redis://u:" + canary + "#x@h:port": "host or port can't be read",
		"redis://u:" + canary + "%zz@h":     "percent-encoding",
		"redis://u:" + canary + "?a@h":      "percent-encode",
		"redis://u:6379?" + canary + "@h":   "percent-encode",
		"redis://h:99999":                   "host or port",
		"redis://":                          "host or port",
		"redis://h:1:2":                     "host or port",
		"redis://h/zero":                    "database behind the host is no number",
		"redis://h/-1":                      "database behind the host is no number",
		"redis://h?timeout=1":               `unknown option "timeout"`,
		"redis://h?%zz":                     "can't be read",
		"redis://h?ca_file=/x":              "begin the address with rediss",
		"rediss://h?ca_file=/no/such":       "ca_file",
		"rediss://h?cert_file=/no/such":     "go together",
		"rediss://h?skip_verify=yes":        "must be true or false",
		"redis+sentinel://h":                "master's name is missing",
		"redis+sentinel://h/main/x":         "database behind the host is no number",
		"redis+cluster://h/3":               "database 0 only",
	} {
		err := checkpoint.Config{URLs: []string{raw}}.Validate()
		require.Error(t, err, raw)
		require.ErrorContains(t, err, want, raw)
		assert.NotContains(t, err.Error(), canary)
		_, err = checkpoint.Open(checkpoint.Config{URLs: []string{raw}}, zerolog.Nop())
		require.Error(t, err, raw)
	}
}

func TestListsMustBeOneCluster(t *testing.T) {
	t.Parallel()
	for want, urls := range map[string][]string{
		"redis.url is empty":         nil,
		"all rediss://":              {"redis://a", "rediss://b"},
		"sentinels in one address":   {"redis+sentinel://a/m", "redis+sentinel://b/m"},
		"database 0 only":            {"redis://a/1", "redis://b/1"},
		"same user and password":     {"redis://u:" + canary + "@a", "redis://v:" + canary + "2@b"},
		"redis.url 2: the host or p": {"redis://a", "redis://b:x"},
	} {
		err := checkpoint.Config{URLs: urls}.Validate()
		require.Error(t, err, want)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), canary)
	}
}

func TestEveryBadURLIsReported(t *testing.T) {
	t.Parallel()
	err := checkpoint.Config{URLs: []string{"x", "redis://a", "y"}}.Validate()
	require.ErrorContains(t, err, "redis.url 1")
	require.ErrorContains(t, err, "redis.url 3")
}

func TestTLSOptionsLeaveTheGivenConfigurationAlone(t *testing.T) {
	t.Parallel()
	given := &tls.Config{MinVersion: tls.VersionTLS13}
	require.NoError(t, checkpoint.Config{URLs: []string{"rediss://h?skip_verify=true"}, TLS: given}.Validate())
	assert.False(t, given.InsecureSkipVerify)
}

func TestAFileWithoutCertificatesIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(path, []byte("nothing"), 0o600))
	err := checkpoint.Config{URLs: []string{"rediss://h?ca_file=" + path}}.Validate()
	require.ErrorContains(t, err, "holds no certificate")
}

func FuzzURLErrorsKeepTheSecret(f *testing.F) {
	f.Add("redis://u:", "@h:6379/0")
	f.Add("redis+sentinel://:", "@h,h2/m/1?ca_file=x")
	f.Fuzz(func(t *testing.T, before, after string) {
		// Behind a question mark without an @ it is an option's name, not a part of a password.
		if strings.Contains(before+after, canary) || strings.ContainsRune(before, '?') && !strings.ContainsRune(after, '@') {
			return
		}
		err := checkpoint.Config{URLs: []string{before + canary + after}}.Validate()
		if err != nil {
			assert.NotContains(t, err.Error(), canary)
		}
	})
}
