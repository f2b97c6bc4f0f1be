package proc_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig/internal/proc"
)

// ownerVariable makes this test binary play the owner of a server, to be ended in the way that the variable says.
const ownerVariable = "RIG_TEST_OWNER"

func TestMain(m *testing.M) {
	if end := os.Getenv(ownerVariable); end != "" {
		if err := own(end); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// own starts a server that would run for ever, tells its id and folder, and ends when its standard input says so.
func own(end string) error {
	dir, err := proc.NewDir("owned")
	if err != nil {
		return err
	}
	server, err := proc.Start(dir, nil, "sleep", "1000000")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, server.Pid(), dir.Path); err != nil {
		return err
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	if end == "panic" {
		panic("the owner ends by a panic, as the test wants it")
	}
	return nil
}

// owner is a running owner and what it told.
type owner struct {
	cmd    *exec.Cmd
	tell   *os.File // its standard input
	server int
	dir    string
}

func startOwner(t *testing.T, end string) *owner {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), ownerVariable+"="+end)
	in, tell, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdin = in
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, in.Close())
	t.Cleanup(func() { assert.NoError(t, tell.Close()) })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, dir, found := strings.Cut(strings.TrimSpace(line), " ")
	require.True(t, found, line)
	server, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.True(t, alive(server))
	require.DirExists(t, dir)
	return &owner{cmd: cmd, tell: tell, server: server, dir: dir}
}

// alive tells whether the process runs; one that is only waiting to be reaped does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func gone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !alive(pid) }, 20*time.Second, 10*time.Millisecond, "process %d still runs", pid)
}

func folderGone(t *testing.T, dir string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	}, 20*time.Second, 10*time.Millisecond, "%s is still there", dir)
}

// isolate gives the test a Root of its own.
func isolate(t *testing.T) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
}

func TestServerAndFolderGoWithTheirOwner(t *testing.T) {
	isolate(t)
	for _, end := range []string{"return", "panic", "killed"} {
		t.Run(end, func(t *testing.T) {
			o := startOwner(t, end)
			if end == "killed" {
				require.NoError(t, o.cmd.Process.Kill())
			} else {
				_, err := o.tell.WriteString("\n")
				require.NoError(t, err)
			}
			err := o.cmd.Wait()
			assert.Equal(t, end == "return", err == nil, "the owner ended by %s: %v", end, err)
			gone(t, o.server)
			folderGone(t, o.dir)
		})
	}
}

// The supervisor may be the one that is killed, before or with the owner.
func TestServerGoesWithItsSupervisorAndTheFolderIsSweptLater(t *testing.T) {
	isolate(t)
	o := startOwner(t, "return")
	require.NoError(t, syscall.Kill(parent(t, o.server), syscall.SIGKILL))
	gone(t, o.server)

	next, err := proc.NewDir("next")
	require.NoError(t, err)
	assert.DirExists(t, o.dir, "its owner is alive")
	require.NoError(t, next.Remove())

	require.NoError(t, o.cmd.Process.Kill())
	require.Error(t, o.cmd.Wait())
	next, err = proc.NewDir("next")
	require.NoError(t, err)
	assert.NoDirExists(t, o.dir, "its owner is gone")
	require.NoError(t, next.Remove())
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(stat), ") ")
	require.True(t, found)
	ppid, err := strconv.Atoi(strings.Fields(rest)[1])
	require.NoError(t, err)
	return ppid
}
