package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// process is one of the relay's commands. It ends with this program, and does not hear a terminal's Ctrl-C: that is for
// this program to answer.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended and was waited for
	err   error         // how, readable once ended is closed
}

const stopTime = 10 * time.Second

// launch must be called on the main goroutine: see main.
func launch(ctx context.Context, env []string, stdout, stderr io.Writer, command ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = stdout, stderr, append(environment(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopTime
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
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

// code is how an ended process ended: an error when it was not by an exit code.
func (p *process) code() (int, error) {
	var exit *exec.ExitError
	switch {
	case p.err == nil:
		return 0, nil
	case errors.As(p.err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode(), nil // it has said why
	}
	return 1, p.err
}

// poll calls try every few milliseconds until it says yes or the context or the process ends.
func (p *process) poll(ctx context.Context, try func() bool) bool {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for !try() {
		select {
		case <-ctx.Done():
			return false
		case <-p.ended:
			return false
		case <-tick.C:
		}
	}
	return true
}

// ready asks the relay's console.
func ready(ctx context.Context, console string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+console+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
