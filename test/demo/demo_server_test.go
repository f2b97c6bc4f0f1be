//go:build !unit

package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/harness"
)

// output collects what the demo prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns it.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// show is one run of the program in a temporary folder of its own.
type show struct {
	cmd *exec.Cmd
	out *output
	tmp string
}

func begin(t *testing.T, args ...string) *show {
	t.Helper()
	program := filepath.Join(t.TempDir(), "demo")
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(built))
	tmp, err := os.MkdirTemp("/tmp", "demo-") //nolint:usetesting // a socket's path has 107 bytes at most
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(tmp)) })
	s := &show{cmd: exec.CommandContext(t.Context(), program, append([]string{"-relay", harness.Binary(t)}, args...)...), out: &output{}, tmp: tmp}
	s.cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	s.cmd.WaitDelay = 30 * time.Second
	require.NoError(t, s.cmd.Start())
	return s
}

// printed waits for a line.
func (s *show) printed(t *testing.T, line string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.out.String(), line) }, 90*time.Second, 10*time.Millisecond, line)
}

// processes returns those that were started by the demo, by the temporary folder in their environment.
func (s *show) processes(t *testing.T) []string {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	var found []string
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, []byte("TMPDIR="+s.tmp)) {
			continue // gone meanwhile, or somebody else's
		}
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if pid := filepath.Base(filepath.Dir(path)); pid != strconv.Itoa(s.cmd.Process.Pid) && len(command) > 0 {
			found = append(found, pid+" "+string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
		}
	}
	return found
}

func (s *show) left(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(s.tmp)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestDemoEndsWithAGoodVerdictAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := begin(t, "-transactions", "1500", "-writers", "4")
	err := s.cmd.Wait()
	text := s.out.String()
	t.Log(text)
	require.NoError(t, err)
	assert.Empty(t, s.processes(t))
	assert.Empty(t, s.left(t))
	assert.Contains(t, text, "the relay was killed (SIGKILL)")
	assert.Contains(t, text, "verdict: good")
	counts := regexp.MustCompile(`committed (\d+), delivered (\d+), lost 0, phantom 0, out of order 0, duplicates \d+`).FindStringSubmatch(text)
	require.Len(t, counts, 3)
	assert.Equal(t, counts[1], counts[2])
	committed, err := strconv.Atoi(counts[1])
	require.NoError(t, err)
	assert.Greater(t, committed, 1500)
}

func TestDemoThatIsInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	s := begin(t, "-transactions", "1000000")
	s.printed(t, "messages committed")
	assert.NotEmpty(t, s.processes(t), "the test must know its processes")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGINT))
	err := s.cmd.Wait()
	t.Log(s.out.String())
	require.Error(t, err)
	assert.Equal(t, 1, s.cmd.ProcessState.ExitCode())
	assert.Contains(t, s.out.String(), "interrupted; everything is stopped and removed")
	assert.Empty(t, s.processes(t))
	assert.Empty(t, s.left(t))
}

func TestDemoThatIsKilledLeavesNoProcess(t *testing.T) {
	t.Parallel()
	s := begin(t, "-transactions", "1000000")
	s.printed(t, "messages committed")
	require.NoError(t, s.cmd.Process.Kill())
	require.Error(t, s.cmd.Wait())
	require.Eventually(t, func() bool { return len(s.processes(t)) == 0 }, 20*time.Second, 20*time.Millisecond, "%v", s.processes(t))
}

func TestDemoRefusesUnknownFlags(t *testing.T) {
	t.Parallel()
	s := begin(t, "-nonsense")
	require.Error(t, s.cmd.Wait())
	assert.Equal(t, 2, s.cmd.ProcessState.ExitCode())
	assert.Empty(t, s.left(t))
}
