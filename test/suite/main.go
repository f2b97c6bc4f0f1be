// Command suite runs go test for `make test` and for CI, in three parts, and judges by its events, not by its last word.
//
//	suite PACKAGE... -- GO-TEST-FLAG...
//
// The parts are the tests without servers, those that share servers, and the stories (see partsOf). When the flags say
// what is run (-run, -skip, -tags), that is the only part. It prints what failed as soon as its package has ended, and at
// the end, on one screen, what was run, how long it took, and what failed and why. A failure is final.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

// run runs the packages' tests and returns an error when they do not pass.
func run(ctx context.Context, args []string, out io.Writer) error {
	split := slices.Index(args, "--")
	if split < 1 {
		return errors.New("usage: suite PACKAGE... -- GO-TEST-FLAG")
	}
	packages, flags := args[:split], args[split+1:]
	if err := checkFlags(flags); err != nil {
		return err
	}
	parts := chosen(packages)
	var sources []source
	if !chooses(flags) {
		var err error
		if sources, err = readSources(ctx, packages); err != nil {
			return err
		}
		parts = partsOf(sources)
	}
	var played []*report
	var broken error
	for _, p := range parts {
		r := &report{part: p.name, out: out, verbose: slices.Contains(flags, "-v")}
		played = append(played, r)
		say(out, "==== %s\n", p.name)
		begun := time.Now()
		broken = goTest(ctx, r, p.packages, slices.Concat(p.flags, flags))
		r.close()
		r.took = time.Since(begun)
		if broken != nil {
			break
		}
	}
	var verdicts []verdict
	for _, r := range played {
		verdicts = append(verdicts, judge(r.failures())...)
	}
	if broken == nil && len(verdicts) == 0 {
		verdicts = missing(sources, played)
	}
	return summarize(out, played, verdicts, broken)
}

// checkFlags refuses flags of go test after which its events do not say what passed.
func checkFlags(flags []string) error {
	for _, flag := range flags {
		switch name := flagName(flag); name {
		case "args", "bench", "c", "failfast", "json", "list", "n":
			return fmt.Errorf("-%s: the suite can't judge a run with this flag, call go test itself", name)
		}
	}
	return nil
}

// goTest runs go test and gives its events to a report. Failing tests are no error.
func goTest(ctx context.Context, to *report, packages, flags []string) error {
	// The packages come first: after a flag that it does not know go takes no more of them.
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-json"}, packages, flags)...)
	// go forwards no signal to the tests, so all of them are a group, which is interrupted and then killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stderr = os.Stderr
	from, stdout := io.Pipe()
	cmd.Stdout = stdout
	read := make(chan error, 1) // size 1: it is read after go test has ended
	go func() { read <- readEvents(from, to) }()
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whoever is left of the group
	}
	_ = stdout.Close() // never fails
	if broken := <-read; broken != nil {
		return broken
	}
	exit, isExit := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("run go test: %w", ctx.Err())
	case isExit && exit.ExitCode() == 1 && to.failed():
		return nil
	case err != nil:
		return fmt.Errorf("run go test: %w, and no test says why", err)
	}
	return nil
}
