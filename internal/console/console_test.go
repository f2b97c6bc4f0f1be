package console_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/outbox-relay/internal/console"
	"example.com/outbox-relay/internal/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a source whose answers a test sets.
type source struct {
	name   string
	live   error
	checks []console.Check
	status any
}

func (s *source) Name() string           { return s.name }
func (s *source) Live() error            { return s.live }
func (s *source) Ready() []console.Check { return s.checks }
func (s *source) Status() any            { return s.status }

func leading() *source {
	return &source{
		name:   "shop",
		checks: []console.Check{{Name: "role", Detail: "leader"}, {Name: "binlog", Detail: "binlog.000003:4"}},
		status: map[string]any{"role": "leader", "in_flight_messages": 7},
	}
}

func newConsole(cfg console.Config, sources ...console.Source) *console.Console {
	reg := metrics.New("test")
	reg.Source("shop").InFlight.Set(7)
	return console.New(cfg, reg.Handler(), sources, zerolog.Nop())
}

// get asks the handler, without a network.
func get(t *testing.T, c *console.Console, path string, header ...string) (int, string) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	for _, h := range header {
		req.Header.Add("Authorization", h)
	}
	rec := httptest.NewRecorder()
	c.Handler().ServeHTTP(rec, req)
	assert.Equal(t, "no-store", rec.Header().Get("Cache-Control"))
	return rec.Code, rec.Body.String()
}

func TestHealth(t *testing.T) {
	t.Parallel()
	standby := &source{name: "b", checks: []console.Check{{Name: "role", Detail: "standby"}}}
	lost := leading()
	lost.checks[1] = console.Check{Name: "binlog", Err: errors.New("not connected:\ndial"), Detail: "unused"}
	degraded := leading()
	degraded.checks[1] = console.Check{Name: "checkpoint", Err: errors.New("redis away"), Degraded: true}
	stuck := leading()
	stuck.live = errors.New("the loops have not turned for 2m")
	for _, tt := range []struct {
		name, path string
		sources    []console.Source
		code       int
		body       string
	}{
		{"Live", "/livez", []console.Source{leading()}, 200, "ok\n"},
		{"LiveWithoutSources", "/livez", nil, 200, "ok\n"},
		{"LiveThoughNotReady", "/livez", []console.Source{lost}, 200, "ok\n"},
		{"LiveVerbose", "/livez?verbose", []console.Source{leading()}, 200, "[+]shop ok\nlivez check passed\n"},
		{"Stuck", "/livez", []console.Source{leading(), stuck}, 503, "[+]shop ok\n[-]shop failed: the loops have not turned for 2m\nlivez check failed\n"},
		{"Ready", "/readyz", []console.Source{leading(), standby}, 200, "ok\n"},
		{
			"ReadyVerbose", "/readyz?verbose",
			[]console.Source{leading(), standby},
			200,
			"[+]shop/role ok: leader\n[+]shop/binlog ok: binlog.000003:4\n[+]b/role ok: standby\nreadyz check passed\n",
		},
		{"NotReady", "/readyz", []console.Source{lost, standby}, 503, "[+]shop/role ok: leader\n[-]shop/binlog failed: not connected:; dial\n[+]b/role ok: standby\nreadyz check failed\n"},
		{"Degraded", "/readyz", []console.Source{degraded}, 200, "ok\n"},
		{"DegradedVerbose", "/readyz?verbose=1", []console.Source{degraded}, 200, "[+]shop/role ok: leader\n[!]shop/checkpoint degraded: redis away\nreadyz check passed\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, body := get(t, newConsole(console.Config{}, tt.sources...), tt.path)
			assert.Equal(t, tt.code, code)
			assert.Equal(t, tt.body, body)
		})
	}
}

func TestMetricsAndUnknownPages(t *testing.T) {
	t.Parallel()
	c := newConsole(console.Config{Prefix: "/relay"}, leading())
	code, body := get(t, c, "/relay/metrics")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, `outbox_relay_in_flight_messages{source="shop"} 7`)
	code, _ = get(t, c, "/relay/livez")
	assert.Equal(t, http.StatusOK, code)
	for _, path := range []string{"/metrics", "/livez", "/", "/relay/", "/relay/metrics/x", "/relay/api/v1/"} {
		code, _ = get(t, c, path)
		assert.Equal(t, http.StatusNotFound, code, path)
	}
	rec := httptest.NewRecorder()
	c.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/relay/metrics", http.NoBody))
	assert.Equal(t, http.StatusMethodNotAllowed, rec.Code)
}

func TestStatus(t *testing.T) {
	t.Parallel()
	lost := leading()
	lost.name = "b"
	lost.checks[0] = console.Check{Name: "binlog", Err: errors.New("away")}
	lost.checks[1] = console.Check{Name: "checkpoint", Err: errors.New("redis away"), Degraded: true}
	code, body := get(t, newConsole(console.Config{Version: "1.2.3"}, leading(), lost), "/api/v1/status")
	require.Equal(t, http.StatusOK, code)
	var status console.Status
	require.NoError(t, json.Unmarshal([]byte(body), &status))
	assert.Equal(t, "1.2.3", status.Version)
	assert.WithinDuration(t, time.Now(), status.Started, time.Minute)
	assert.False(t, status.Ready)
	require.Len(t, status.Sources, 2)
	assert.True(t, status.Sources[0].Ready)
	assert.JSONEq(t, `{"role": "leader", "in_flight_messages": 7}`, string(status.Sources[0].Status))
	assert.False(t, status.Sources[1].Ready)
	assert.Equal(t, []console.CheckStatus{
		{Name: "binlog", Error: "away"}, {Name: "checkpoint", Degraded: true, Error: "redis away"},
	}, status.Sources[1].Checks)

	broken := &source{name: "x", status: make(chan int)}
	code, _ = get(t, newConsole(console.Config{}, broken), "/api/v1/status")
	assert.Equal(t, http.StatusInternalServerError, code)
	code, body = get(t, newConsole(console.Config{}), "/api/v1/status")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, `"sources": []`)
}

func start(t *testing.T, c *console.Console) string {
	t.Helper()
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		assert.NoError(t, c.Close(ctx))
	})
	return c.Addr()
}

func TestServesUntilClose(t *testing.T) {
	t.Parallel()
	c := newConsole(console.Config{Listen: "127.0.0.1:0"}, leading())
	address := start(t, c)
	require.Error(t, c.Start(t.Context()), "twice")
	client := console.NewClient(console.Config{Listen: address})
	require.NoError(t, client.Live(t.Context()))
	require.NoError(t, client.Ready(t.Context()))
	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, c.Close(t.Context()), "twice")
	require.ErrorContains(t, client.Live(t.Context()), "is it running?")
}

func TestOffAndTakenPort(t *testing.T) {
	t.Parallel()
	off := newConsole(console.Config{})
	require.NoError(t, off.Start(t.Context()))
	assert.Empty(t, off.Addr())
	require.NoError(t, off.Close(t.Context()))
	require.ErrorIs(t, console.NewClient(console.Config{}).Live(t.Context()), console.ErrOff)

	address := start(t, newConsole(console.Config{Listen: "127.0.0.1:0"}))
	taken := newConsole(console.Config{Listen: address})
	require.ErrorContains(t, taken.Start(t.Context()), "change console.listen")
	require.NoError(t, taken.Close(t.Context()))
}

// blocking holds a request until released, and tells when it has arrived.
type blocking struct {
	source
	arrived  chan struct{}
	released chan struct{}
	once     sync.Once
}

func (b *blocking) Live() error {
	b.once.Do(func() { close(b.arrived) })
	<-b.released
	return nil
}

func TestCloseLetsRequestsEndAndThenCutsThemOff(t *testing.T) {
	t.Parallel()
	for _, patient := range []bool{true, false} {
		b := &blocking{arrived: make(chan struct{}), released: make(chan struct{})}
		c := newConsole(console.Config{Listen: "127.0.0.1:0"}, b)
		require.NoError(t, c.Start(t.Context()))
		answer := make(chan error, 1)
		go func() { answer <- console.NewClient(console.Config{Listen: c.Addr()}).Live(t.Context()) }()
		<-b.arrived
		if patient {
			closed := make(chan error, 1)
			go func() { closed <- c.Close(t.Context()) }()
			close(b.released)
			require.NoError(t, <-answer)
			require.NoError(t, <-closed)
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, c.Close(ctx), context.Canceled)
		require.Error(t, <-answer)
		close(b.released)
	}
}

// panicking shows that a fault of one page neither ends the process nor goes unseen.
type panicking struct{ source }

func (panicking) Live() error { panic("boom") }

func TestPanicIsLogged(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	c := console.New(console.Config{Listen: "127.0.0.1:0"}, http.NotFoundHandler(), []console.Source{&panicking{}}, zerolog.New(&log))
	client := console.NewClient(console.Config{Listen: start(t, c)})
	require.Error(t, client.Live(t.Context()))
	require.NoError(t, client.Ready(t.Context()))
	require.NoError(t, c.Close(t.Context()))
	assert.Contains(t, log.String(), `"level":"error"`)
	assert.Contains(t, log.String(), "boom")
}

func TestWarnsWhenOpenToTheNetwork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		listen, token string
		warn          bool
	}{{"127.0.0.1:0", "", false}, {"[::1]:0", "", false}, {":0", "", true}, {"0.0.0.0:0", "", true}, {":0", "t", false}} {
		var log syncBuffer
		c := console.New(console.Config{Listen: tt.listen, Token: tt.token}, http.NotFoundHandler(), nil, zerolog.New(&log))
		if err := c.Start(t.Context()); err != nil {
			require.Equal(t, "[::1]:0", tt.listen, "only IPv6 may be missing here: %v", err)
			continue
		}
		assert.Equal(t, tt.warn, strings.Contains(log.String(), `"level":"warn"`), tt.listen)
		require.NoError(t, c.Close(t.Context()))
	}
}

// A client that sends its header byte by byte is cut off; others are served meanwhile.
func TestSlowHeaderIsCutOff(t *testing.T) {
	t.Parallel()
	address := start(t, newConsole(console.Config{Listen: "127.0.0.1:0"}, leading()))
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer func() { assert.NoError(t, conn.Close()) }()
	begun := time.Now()
	_, err = conn.Write([]byte("GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: "))
	require.NoError(t, err)
	require.NoError(t, console.NewClient(console.Config{Listen: address}).Live(t.Context()))
	require.NoError(t, conn.SetReadDeadline(begun.Add(20*time.Second)))
	_, err = io.Copy(io.Discard, conn)
	require.NoError(t, err, "the server must end the connection")
	assert.Less(t, time.Since(begun), 15*time.Second)
}

func TestHugeHeaderIsRefused(t *testing.T) {
	t.Parallel()
	address := start(t, newConsole(console.Config{Listen: "127.0.0.1:0"}, leading()))
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer func() { assert.NoError(t, conn.Close()) }()
	go func() {
		// The server stops reading somewhere in here, so an error is part of the story.
		_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\nX-Huge: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
	}()
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, "431")
}

// syncBuffer is a log that the server's goroutines may write to.
type syncBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	address := start(t, newConsole(console.Config{Listen: "127.0.0.1:0", Token: "t"}, leading()))
	client := console.NewClient(console.Config{Listen: address, Token: "t"})
	var served atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				if _, err := client.Status(t.Context()); err == nil {
					served.Add(1)
				}
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 100, served.Load())
}
