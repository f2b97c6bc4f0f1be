package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is one of the three. It ends with this program.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended and was waited for
	err   error         // how, readable once ended is closed
}

const stopTime = 10 * time.Second

func launch(ctx context.Context, output io.Writer, command ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = output, output, environment()
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

// environment is this program's own without what the relay would take for configuration.
func environment() []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "OUTBOX_RELAY_") {
			env = append(env, pair)
		}
	}
	return env
}

// kill ends it with SIGKILL.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

// stop asks it to end and waits; when that takes too long, it is killed.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.err
	case <-timer.C:
		return errors.Join(fmt.Errorf("it did not end within %s of SIGTERM", stopTime), p.kill())
	}
}
