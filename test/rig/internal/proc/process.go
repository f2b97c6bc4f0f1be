package proc

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the supervisor's text
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed supervise.sh
var supervise string

// ErrEnded is returned when a server ended where it should have gone on.
var ErrEnded = errors.New("the server has ended")

// Process is one run of a server. Its methods are for one goroutine at a time.
type Process struct {
	pid        int
	dir        *Dir
	supervisor *exec.Cmd
	hold       *os.File // the owner's end of the supervisor's pipe
}

// Start runs the command with its output in the folder's log.
func Start(dir *Dir, env []string, command ...string) (*Process, error) {
	if err := os.Remove(dir.Join("exit")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	held, hold, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	defer held.Close() //nolint:errcheck // our copy of the supervisor's standard input
	out, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", command[0], err), hold.Close())
	}
	defer out.Close() //nolint:errcheck // read to the end or given up

	// No context: the process ends by Kill, Stop or with its owner.
	cmd := exec.Command("bash", append([]string{"-c", supervise, "rig-supervisor", dir.Path}, command...)...) //nolint:noctx // see above
	cmd.Stdin, cmd.Stdout = held, in
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal's Ctrl-C is the owner's to answer
	err = errors.Join(cmd.Start(), in.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", command[0], err), hold.Close())
	}
	p := &Process{dir: dir, supervisor: cmd, hold: hold}
	if err := out.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", command[0], err), p.Kill())
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		p.pid, err = strconv.Atoi(strings.TrimSpace(line))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: the supervisor did not answer: %w", command[0], err), p.Kill())
	}
	return p, nil
}

// Pid is the server's process id.
func (p *Process) Pid() int { return p.pid }

// Ended tells whether the server has ended by itself.
func (p *Process) Ended() bool {
	_, err := os.Stat(p.dir.Join("exit"))
	return err == nil
}

// Signal sends a signal to the server.
func (p *Process) Signal(sig syscall.Signal) error {
	if p.Ended() { // its id may be another process's by now
		return ErrEnded
	}
	return syscall.Kill(p.pid, sig)
}

// Pause stops the server (SIGSTOP) and waits until each of its threads has stopped: the signal takes them one after the other, and
// one that still runs answers.
func (p *Process) Pause(ctx context.Context) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !p.stopped() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until process %d has stopped: %w", p.pid, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// stopped reads the state of each thread, the letter behind the command's name, which is in parentheses.
func (p *Process) stopped() bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.pid))
	if err != nil || len(stats) == 0 {
		return false
	}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if !strings.HasPrefix(rest, "T") {
			return false
		}
	}
	return true
}

// Stop asks the server to end and waits for it; when the context ends first, it kills the server and says so.
func (p *Process) Stop(ctx context.Context) error {
	err := p.Signal(syscall.SIGTERM)
	if errors.Is(err, ErrEnded) {
		return p.Kill()
	}
	if err == nil {
		err = Poll(ctx, func(context.Context) error {
			if p.Ended() {
				return nil
			}
			return errors.New("still running after SIGTERM")
		})
	}
	return errors.Join(err, p.Kill())
}

// Kill ends the server at once (SIGKILL) and waits for it. Killing one that has ended is no error.
func (p *Process) Kill() error {
	var errs []error
	if p.pid != 0 {
		if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, ErrEnded) && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, err)
		}
		// Without this word the supervisor would remove the folder.
		if _, err := p.hold.WriteString("keep\n"); err != nil && !errors.Is(err, syscall.EPIPE) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, p.hold.Close())
	if err := p.supervisor.Wait(); err != nil && !isExit(err) { // its status says nothing
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Log returns the last lines that the server wrote, for error messages.
func (p *Process) Log() string { return Tail(p.dir.Join("log")) }

// Tail returns the last lines of a file.
func Tail(path string) string {
	const most = 3000
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return string(bytes.TrimSpace(text))
}

func isExit(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}

// Poll calls try every few milliseconds until it returns nil, ErrEnded, or the context ends; it returns the last error.
func Poll(ctx context.Context, try func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil || errors.Is(err, ErrEnded) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
