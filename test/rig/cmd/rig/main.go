// Command rig starts one server of each kind: for a run of all test binaries, or for a person who tries the relay.
//
//	rig exec -- COMMAND...   runs the command with the servers up, ends them, and exits as the command did
//	rig up                   prints a configuration for the servers and waits for Ctrl-C
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"example.com/outbox-relay/test/rig"
)

const usage = "usage: rig exec -- COMMAND [ARGUMENT...] | rig up"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
	}
	os.Exit(code)
}

// run does what the arguments say and returns the exit code.
func run(ctx context.Context, args []string, out io.Writer) (code int, err error) {
	var do func(context.Context, *rig.All) (int, error)
	switch {
	case len(args) == 1 && args[0] == "up":
		do = func(ctx context.Context, all *rig.All) (int, error) { return up(ctx, all, out) }
	case len(args) >= 3 && args[0] == "exec" && args[1] == "--":
		if _, err := exec.LookPath(args[2]); err != nil { // before servers are started for nothing
			return 1, err
		}
		do = func(ctx context.Context, all *rig.All) (int, error) { return execute(ctx, all, args[2:]) }
	default:
		return 2, errors.New(usage)
	}
	all, err := rig.StartAll(ctx)
	if err != nil {
		return 1, err
	}
	code, err = do(ctx, all)
	if cerr := all.Close(); cerr != nil {
		return max(code, 1), errors.Join(err, cerr)
	}
	return code, err
}

// execute runs the command in a process group of its own, so that an interrupt reaches all of it once, from here.
func execute(ctx context.Context, all *rig.All, command []string) (int, error) {
	environ, err := all.Environ(os.Environ())
	if err != nil {
		return 1, err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = environ
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 20 * time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode(), nil // it has said why
	}
	if err != nil {
		return 1, errors.Join(err, killGroup(cmd))
	}
	return 0, nil
}

// killGroup ends what a command that did not answer the interrupt has left.
func killGroup(cmd *exec.Cmd) error {
	if cmd.Process == nil {
		return nil
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
