package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"example.com/outbox-relay/test/rig/internal/proc"
)

// How long a server may take on a machine that is busy with other tests.
const (
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// instance is one server process that can be stopped and started again on the same folder and port.
type instance struct {
	name    string
	dir     *proc.Dir
	ports   []*proc.Port
	command []string
	env     []string
	ready   func(ctx context.Context) error // one try
	process *proc.Process                   // nil while stopped
}

// newInstance reserves a folder and ports. The caller fills in the rest and calls start.
func newInstance(name string, ports int) (*instance, error) {
	dir, err := proc.NewDir(name)
	if err != nil {
		return nil, err
	}
	i := &instance{name: name, dir: dir}
	for range ports {
		port, err := proc.ReservePort()
		if err != nil {
			return nil, errors.Join(err, i.destroy())
		}
		i.ports = append(i.ports, port)
	}
	return i, nil
}

// start runs the server and waits until it answers. The arguments are for this run only.
func (i *instance) start(ctx context.Context, args ...string) error {
	if err := i.launch(args...); err != nil {
		return err
	}
	return i.await(ctx)
}

// launch runs the server; await must follow.
func (i *instance) launch(args ...string) error {
	if i.process != nil {
		return fmt.Errorf("start %s: it is running", i.name)
	}
	process, err := proc.Start(i.dir, i.env, slices.Concat(i.command, args)...)
	if err != nil {
		return err
	}
	i.process = process
	return nil
}

// await waits until the launched server answers, and ends it if it does not.
func (i *instance) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := proc.Poll(ctx, func(ctx context.Context) error {
		if i.process.Ended() {
			return proc.ErrEnded
		}
		return i.ready(ctx)
	})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("start %s: %w; its log ends with:\n%s", i.name, err, i.process.Log())
	return errors.Join(err, i.kill())
}

// stop ends the server as an operator would. Stopping one that is stopped is no error.
func (i *instance) stop(ctx context.Context) error {
	if i.process == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	process := i.process
	i.process = nil
	if err := process.Stop(ctx); err != nil {
		return fmt.Errorf("stop %s: %w", i.name, err)
	}
	return nil
}

// kill ends the server with SIGKILL. Killing one that is stopped is no error.
func (i *instance) kill() error {
	if i.process == nil {
		return nil
	}
	process := i.process
	i.process = nil
	if err := process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", i.name, err)
	}
	return nil
}

func (i *instance) signal(sig syscall.Signal) error {
	if i.process == nil {
		return fmt.Errorf("signal %s: it is not running", i.name)
	}
	if err := i.process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s: %w", i.name, err)
	}
	return nil
}

// pause stops the server and waits until it has.
func (i *instance) pause(ctx context.Context) error {
	if i.process == nil {
		return fmt.Errorf("pause %s: it is not running", i.name)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := i.process.Pause(ctx); err != nil {
		return fmt.Errorf("pause %s: %w", i.name, err)
	}
	return nil
}

// destroy kills the server and gives back its folder and ports.
func (i *instance) destroy() error {
	errs := []error{i.kill(), i.dir.Remove()}
	for _, port := range i.ports {
		errs = append(errs, port.Release())
	}
	return errors.Join(errs...)
}

// control is the part of a server that a test turns on and off. A shared server refuses.
type control struct {
	inst *instance // nil when another process runs the server
	own  bool
}

// Stop ends the server as an operator would (SIGTERM) and waits for it.
func (c *control) Stop(t testing.TB) {
	t.Helper()
	c.must(t, func() error { return c.inst.stop(context.WithoutCancel(t.Context())) })
}

// Start runs the stopped server again on the same folder and port and waits until it answers. The arguments are for
// this run only, after those it was made with.
func (c *control) Start(t testing.TB, args ...string) {
	t.Helper()
	c.must(t, func() error { return c.inst.start(context.WithoutCancel(t.Context()), args...) })
}

// Restart is Stop and Start.
func (c *control) Restart(t testing.TB, args ...string) {
	t.Helper()
	c.Stop(t)
	c.Start(t, args...)
}

// Kill ends the server with SIGKILL; Start brings it back.
func (c *control) Kill(t testing.TB) {
	t.Helper()
	c.must(t, func() error { return c.inst.kill() })
}

// Pause freezes the server (SIGSTOP): its connections stay open and nothing answers.
func (c *control) Pause(t testing.TB) {
	t.Helper()
	c.must(t, func() error { return c.inst.pause(t.Context()) })
}

// Resume lets a paused server go on.
func (c *control) Resume(t testing.TB) {
	t.Helper()
	c.must(t, func() error { return c.inst.signal(syscall.SIGCONT) })
}

func (c *control) must(t testing.TB, do func() error) {
	t.Helper()
	if !c.own {
		t.Fatal("other tests use this server too: ask for one of your own with rig.Own()")
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
}

// adopt gives an own instance to the test: it ends with it.
func (c *control) adopt(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.inst.destroy(); err != nil {
			t.Errorf("clean up after the test: %v", err)
		}
	})
}
