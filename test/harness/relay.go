package harness

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Relay is one running process of the relay.
type Relay struct {
	// Console is the address of its HTTP server.
	Console string
	// Config is the path of its configuration, for other commands.
	Config string

	token  string // console.token
	client *http.Client
	t      testing.TB
	cmd    *exec.Cmd
	log    *journal
	exited chan struct{} // closed when the process is gone, waited for, and its log is whole
	err    error         // its exit, readable once exited is closed
}

// Start starts `outbox-relay run` and returns at once. The process dies with the test at the latest.
func Start(t testing.TB, s Settings) *Relay {
	t.Helper()
	return startWith(t, s, Binary(t))
}

func startWith(t testing.TB, s Settings, binary string) *Relay {
	t.Helper()
	r := &Relay{t: t, Config: s.Write(t), log: newJournal(), exited: make(chan struct{})}
	r.client = &http.Client{Transport: &http.Transport{}}
	r.Console, _ = s["console.listen"].(string)
	r.token, _ = s["console.token"].(string)
	r.cmd = exec.CommandContext(t.Context(), binary, "run", "--config", r.Config)
	r.cmd.Stdout, r.cmd.Stderr, r.cmd.Env = r.log, r.log, environment()
	// The test's process may be killed by a time-out, with no chance to clean up.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		t.Fatalf("start the relay: %v", err)
	}
	go func() {
		r.err = r.cmd.Wait()
		close(r.exited)
	}()
	t.Cleanup(r.cleanup)
	return r
}

// environment is the test's own without what the relay would take for configuration.
func environment() []string {
	env := []string{"GORACE=halt_on_error=0"}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "OUTBOX_RELAY_") {
			env = append(env, pair)
		}
	}
	return env
}

// cleanup ends the process if it still runs and looks for what no relay may ever print.
func (r *Relay) cleanup() {
	_ = r.cmd.Process.Signal(syscall.SIGCONT)
	if r.t.Failed() {
		// Where its goroutines stand is often what is missing from a log.
		_ = r.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-r.exited:
		case <-time.After(5 * time.Second):
		}
	}
	_ = r.cmd.Process.Kill()
	<-r.exited
	r.client.CloseIdleConnections()
	log := r.Log()
	for _, bad := range []string{"WARNING: DATA RACE", "panic:", "fatal error:"} {
		if strings.Contains(log, bad) {
			r.t.Errorf("the relay's log has %q", bad)
		}
	}
	// OUTBOX_RELAY_TEST_LOG=1 shows the log of a test that passes, too.
	if r.t.Failed() || os.Getenv("OUTBOX_RELAY_TEST_LOG") != "" {
		r.t.Logf("log of relay %d (%s):\n%s", r.PID(), r.Console, tail(log, 60<<10))
	}
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return fmt.Sprintf("(%d bytes before)\n%s", len(s)-n, s[len(s)-n:])
}

// PID returns the process' id.
func (r *Relay) PID() int { return r.cmd.Process.Pid }

// Log returns what the process has printed so far.
func (r *Relay) Log() string {
	text, _ := r.log.from(0)
	return text
}

// WaitLog waits until a line of the log has one of the texts. A process that ends without it fails the test at once.
func (r *Relay) WaitLog(limit time.Duration, texts ...string) {
	r.t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for read := 0; ; {
		gone := r.gone() // asked first: then the log is whole
		more, grown := r.log.from(read)
		for line := range strings.Lines(more) {
			if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
				return
			}
			if strings.HasSuffix(line, "\n") { // another one is read again when it has its end
				read += len(line)
			}
		}
		if gone {
			r.t.Fatalf("the relay ended with %d and has logged none of %q", r.ExitCode(), texts)
		}
		select {
		case <-grown:
		case <-r.exited:
		case <-deadline.C:
			r.t.Fatalf("not within %s: a log line with one of %q; it ends with\n%s", limit, texts, tail(r.Log(), 500))
		}
	}
}

// gone reports whether the process has ended.
func (r *Relay) gone() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

// Exited is closed when the process is gone.
func (r *Relay) Exited() <-chan struct{} { return r.exited }

// ExitCode returns how the process ended: its exit code, or minus the signal that killed it. Only after Exited.
func (r *Relay) ExitCode() int {
	var exit *exec.ExitError
	if !errors.As(r.err, &exit) {
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -int(status.Signal())
	}
	return exit.ExitCode()
}

// Stop asks the relay to end by SIGTERM and returns its exit code and how long it took. It fails the test, and kills
// the relay, when that takes more than 40 s.
func (r *Relay) Stop() (code int, took time.Duration) {
	r.t.Helper()
	begun := time.Now()
	r.signal(syscall.SIGTERM)
	select {
	case <-r.exited:
	case <-time.After(40 * time.Second):
		// The goroutines tell what it hung on.
		r.signal(syscall.SIGQUIT)
		<-r.exited
		r.t.Fatalf("the relay did not end within 40 s of SIGTERM:\n%s", tail(r.Log(), 24<<10))
	}
	return r.ExitCode(), time.Since(begun)
}

// Kill ends the relay by SIGKILL and waits until it is gone.
func (r *Relay) Kill() {
	r.t.Helper()
	r.signal(syscall.SIGKILL)
	<-r.exited
}

// Pause freezes the process and waits until it is.
func (r *Relay) Pause() {
	r.t.Helper()
	r.signal(syscall.SIGSTOP)
	Eventually(r.t, 5*time.Second, "relay frozen", func() (bool, string) {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.PID()))
		if err != nil {
			return false, err.Error()
		}
		_, state, _ := strings.Cut(string(content), ") ")
		return strings.HasPrefix(state, "T"), state
	})
}

// Resume lets a frozen process go on.
func (r *Relay) Resume() { r.signal(syscall.SIGCONT) }

func (r *Relay) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Fatalf("send %s to the relay: %v", sig, err)
	}
}
