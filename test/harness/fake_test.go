package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain turns the test binary into a stand-in for the relay when it is called as one, so that the harness is tested
// without it.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "run" && os.Args[2] == "--config" {
		os.Exit(standIn(os.Args[3]))
	}
	goleak.VerifyTestMain(m)
}

// standIn serves a console that is ready at the third question, and ends at SIGTERM with the code of its configuration.
func standIn(config string) int {
	content, err := os.ReadFile(config)
	if err != nil {
		return 2
	}
	var parsed struct {
		Console struct{ Listen string }
		Fake    struct {
			Code  int
			Print string
			Die   bool
		}
	}
	if err := json.Unmarshal(content, &parsed); err != nil {
		return 2
	}
	_, _ = fmt.Fprintln(os.Stdout, parsed.Fake.Print)
	if parsed.Fake.Die {
		return 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var asked atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `# TYPE outbox_relay_leader gauge
outbox_relay_leader{source="default"} 1
# TYPE outbox_relay_messages_published_total counter
outbox_relay_messages_published_total{origin="stream",topic="a"} 3
outbox_relay_messages_published_total{origin="sweep",topic="a"} 2
outbox_relay_messages_published_total{origin="stream",topic="b"} 1
`)
	})
	mux.HandleFunc("/api/v1/status", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"state":"leading"}`) })
	server := &http.Server{Addr: parsed.Console.Listen, Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = server.ListenAndServe() }()
	<-ctx.Done()
	return parsed.Fake.Code
}

func fake(t *testing.T, pairs ...any) *Relay {
	t.Helper()
	target := Target{Primary: Endpoint{Addr: "127.0.0.1:1"}, Tables: []string{"app.local_message"}}
	return startWith(t, target.Settings(t).With(pairs...), os.Args[0])
}

func TestRelayRunsAndStops(t *testing.T) {
	t.Parallel()
	r := fake(t, "fake.code", 7, "fake.print", "hello")
	r.WaitLeading(10 * time.Second)
	m, err := r.Metrics()
	require.NoError(t, err)
	assert.InDelta(t, 6, m.Sum("messages_published_total"), 0)
	assert.InDelta(t, 5, m.Sum("messages_published_total", "topic", "a"), 0)
	assert.InDelta(t, 3, m.Sum("messages_published_total", "topic", "a", "origin", "stream"), 0)
	assert.Zero(t, m.Sum("no_such_thing"))
	status, err := r.Status()
	require.NoError(t, err)
	assert.Equal(t, "leading", status["state"])
	memory := r.Memory()
	assert.Greater(t, memory.Peak, uint64(1<<20))
	assert.GreaterOrEqual(t, memory.Peak, memory.Now)
	assert.Less(t, r.CPU(), time.Minute)
	code, took := r.Stop()
	assert.Equal(t, 7, code)
	assert.Less(t, took, 10*time.Second)
	assert.Contains(t, r.Log(), "hello")
}

func TestRelayIsKilledAndFrozen(t *testing.T) {
	t.Parallel()
	r := fake(t)
	r.WaitReady(10 * time.Second)
	r.Pause()
	code, _ := r.Fetch("/readyz")
	assert.Zero(t, code, "a frozen process answers nothing")
	r.Resume()
	r.WaitReady(10 * time.Second)
	r.Kill()
	assert.Equal(t, -int(syscall.SIGKILL), r.ExitCode())
}

// witness is a testing.TB that notes failures instead of failing.
type witness struct {
	testing.TB
	errors  []string
	cleanup []func()
}

func (w *witness) Errorf(format string, args ...any) {
	w.errors = append(w.errors, fmt.Sprintf(format, args...))
}

// Fatalf ends the goroutine, as it does in a test.
func (w *witness) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	runtime.Goexit()
}
func (w *witness) Cleanup(f func()) { w.cleanup = append(w.cleanup, f) }
func (w *witness) Failed() bool     { return false }

func TestRelayFailsTheTestWhenItPanickedOrRaced(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"panic: no", "WARNING: DATA RACE", "fatal error: all goroutines are asleep"} {
		w := &witness{TB: t}
		target := Target{Tables: []string{"app.local_message"}}
		r := startWith(w, target.Settings(t).With("fake.print", words, "fake.die", true), os.Args[0])
		<-r.Exited()
		assert.Equal(t, 3, r.ExitCode())
		for _, f := range w.cleanup {
			f()
		}
		assert.Len(t, w.errors, 1, words)
	}
}

func TestWaitLogSeesWhatIsPrintedAndWhatNeverComes(t *testing.T) {
	t.Parallel()
	r := fake(t, "fake.print", "hello")
	r.WaitLog(10*time.Second, "no such thing", "hell")
	for name, settings := range map[string][]any{"Ended": {"fake.die", true}, "Silent": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &witness{TB: t}
			r := startWith(w, Target{Tables: []string{"app.local_message"}}.Settings(t).With(settings...), os.Args[0])
			t.Cleanup(r.cleanup)
			over := make(chan struct{})
			go func() {
				defer close(over)
				r.WaitLog(100*time.Millisecond, "no such thing")
			}()
			<-over
			require.Len(t, w.errors, 1)
			assert.Contains(t, w.errors[0], "no such thing")
		})
	}
}

func TestSettingsMakeATree(t *testing.T) {
	t.Parallel()
	path := Settings{"a.b.c": 1, "a.b.d": "x", "e": []string{"y"}}.With("a.b.c", 2).Write(t)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.JSONEq(t, `{"a":{"b":{"c":2,"d":"x"}},"e":["y"]}`, string(content))
}
