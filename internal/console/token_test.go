package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/console"
)

const token = "s3cret token"

func TestToken(t *testing.T) {
	t.Parallel()
	failing := leading()
	failing.checks[1] = console.Check{Name: "binlog", Err: assert.AnError}
	c := newConsole(console.Config{Token: token}, failing)
	for _, path := range []string{"/metrics", "/api/v1/status"} {
		for _, header := range [][]string{
			nil,
			{""},
			{"Bearer"},
			{"Bearer "},
			{token},
			{"Basic " + token},
			{"Bearer" + token},
			{"Bearer  " + token},
			{"Bearer " + token + " "},
			{"Bearer " + token[:5]},
			{"Bearer " + token + "x"},
			{"Bearer " + strings.ToUpper(token)},
			{"Bearer " + strings.Repeat("x", 10000)},
			{"Bearer " + token, "Bearer " + token},
		} {
			code, body := get(t, c, path, header...)
			assert.Equal(t, http.StatusUnauthorized, code, "%s %q", path, header)
			assert.NotContains(t, body, token)
		}
		for _, header := range []string{"Bearer " + token, "bearer " + token, "BEARER " + token} {
			code, _ := get(t, c, path, header)
			assert.Equal(t, http.StatusOK, code, "%s %q", path, header)
		}
	}
	code, body := get(t, c, "/livez")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "ok\n", body)
	code, body = get(t, c, "/readyz?verbose")
	assert.Equal(t, http.StatusServiceUnavailable, code, "health is open")
	assert.Equal(t, "[+]shop/role ok\n[-]shop/binlog failed: reason withheld, send the token\nreadyz check failed\n", body)
	_, body = get(t, c, "/readyz", "Bearer "+token)
	assert.Contains(t, body, assert.AnError.Error())
}

func TestUnauthorisedTellsHow(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	newConsole(console.Config{Token: token}).Handler().
		ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	assert.Equal(t, `Bearer realm="outbox-relay"`, rec.Header().Get("WWW-Authenticate"))
	assert.Contains(t, rec.Body.String(), "console.token")
}

// Only the exact token lets anyone in.
func FuzzToken(f *testing.F) {
	f.Add(token, "Bearer "+token)
	f.Add("a", "Bearer a")
	f.Add("a", "bearer  a")
	f.Add("\x00", "Bearer \x00")
	f.Fuzz(func(t *testing.T, want, header string) {
		if want == "" {
			return // no token is asked for
		}
		code, _ := get(t, newConsole(console.Config{Token: want}, leading()), "/api/v1/status", header)
		scheme, shown, _ := strings.Cut(header, " ")
		let := strings.EqualFold(scheme, "bearer") && shown == want
		require.Equal(t, let, code == http.StatusOK, "%q %q", want, header)
	})
}

func TestClient(t *testing.T) {
	t.Parallel()
	failing := leading()
	failing.live = assert.AnError
	c := newConsole(console.Config{Listen: ":0", Token: token, Version: "v", Prefix: "/relay"}, failing)
	_, port, _ := strings.Cut(start(t, c), "]:")
	cfg := console.Config{Listen: ":" + port, Token: token, Prefix: "/relay"}
	status, err := console.NewClient(cfg).Status(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "v", status.Version)
	require.ErrorContains(t, console.NewClient(cfg).Live(t.Context()), assert.AnError.Error())

	cfg.Token = "other"
	_, err = console.NewClient(cfg).Status(t.Context())
	require.ErrorContains(t, err, "does not accept the token")
	cfg.Prefix = "/elsewhere"
	_, err = console.NewClient(cfg).Status(t.Context())
	require.ErrorContains(t, err, "404")
}

func TestClientWithSomethingElseListening(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write([]byte("<html>"))
		assert.NoError(t, err)
	}))
	defer other.Close()
	_, err := console.NewClient(console.Config{Listen: strings.TrimPrefix(other.URL, "http://")}).Status(t.Context())
	require.ErrorContains(t, err, "is it a relay that listens there?")
}
