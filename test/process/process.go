// Package process runs commands of the product as children that end with their parent, be it by SIGKILL. The demo and the example of
// two services use it; tests of the relay itself have test/harness.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Process is a running command. It does not hear a terminal's Ctrl-C: that is for its parent to answer. Its methods may be called
// concurrently.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended and was waited for
	err   error         // how, readable once ended is closed
}

// stopTime is how long a process may take to end.
const stopTime = 10 * time.Second

// Launch starts a command with env beside this program's own environment, without what the relay would take for configuration.
// When ctx ends it gets SIGTERM.
func Launch(ctx context.Context, env []string, stdout, stderr io.Writer, command ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = stdout, stderr, append(environment(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopTime
	started := make(chan error)
	go func() {
		// The kernel ends the child with the thread that has started it (Pdeathsig), so that must wait for it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	return p, nil
}

func environment() []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "OUTBOX_RELAY_") {
			env = append(env, pair)
		}
	}
	return env
}

// ID is the process id.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Ended is closed once the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err returns how an ended process ended.
func (p *Process) Err() error {
	<-p.ended
	return p.err
}

// Kill ends it with SIGKILL and waits. One that has ended is no error.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

// Stop asks it to end and waits; when that takes too long, it is killed.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.err
	case <-timer.C:
		return errors.Join(fmt.Errorf("it did not end within %s of SIGTERM", stopTime), p.Kill())
	}
}

// FreeAddr returns a loopback address that nobody listened on a moment ago.
func FreeAddr(ctx context.Context) (string, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
