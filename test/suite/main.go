// Command suite runs go test for `make test` and for CI, and judges by its events, not by its last word.
//
//	suite PACKAGE... -- GO-TEST-FLAG...
//
// It prints what failed as soon as its package has ended, and at the end, on one screen, what was run, how long it
// took, and what was run again and why. A failure is final, but for a test that test/flaky.md lists: that is run once
// more, alone, unless what it said is a verdict, which no second try takes back: lost or repeated messages, a broken
// order, a data race, a panic, a property that does not hold.
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
	"strings"
	"syscall"
	"time"
)

// flakyList is where the tests are listed that may be run again.
const flakyList = "test/flaky.md"

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
	listed, err := readFlaky(flakyList)
	if err != nil {
		return err
	}
	begun := time.Now()
	first := &report{out: out, verbose: slices.Contains(flags, "-v")}
	broken := goTest(ctx, first, packages, flags)
	first.close()
	verdicts := judge(first.failures(), listed)
	var again []retried
	if broken == nil && !slices.ContainsFunc(verdicts, verdict.isFinal) {
		again, broken = runAgain(ctx, verdicts, flags)
	}
	return summarize(out, first, verdicts, again, broken, time.Since(begun))
}

// checkFlags refuses flags of go test after which its events do not say what passed.
func checkFlags(flags []string) error {
	for _, flag := range flags {
		name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		switch name {
		case "args", "bench", "c", "failfast", "json", "list", "n":
			return fmt.Errorf("-%s: the suite can't judge a run with this flag, call go test itself", name)
		}
	}
	return nil
}

// runAgain runs each test once more, alone.
func runAgain(ctx context.Context, verdicts []verdict, flags []string) ([]retried, error) {
	again := make([]retried, 0, len(verdicts))
	for _, v := range verdicts {
		second := &report{out: io.Discard}
		if err := goTest(ctx, second, []string{v.pkg}, slices.Concat(flags, []string{"-count=1", "-run", "^" + v.test + "$"})); err != nil {
			return again, err
		}
		again = append(again, retried{verdict: v, passed: second.passed(v.pkg, v.test), output: second.output()})
	}
	return again, nil
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
