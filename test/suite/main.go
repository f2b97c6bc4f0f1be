// Command suite runs go test for `make test` and for CI, and judges by its events, not by its last word.
//
//	suite PACKAGE... -- GO-TEST-FLAG...
//
// It prints what failed as soon as its package has ended, and at the end, on one screen, what was run, how long it took, and
// what was run again and why. A failure is final, but for a test that test/flaky.md lists: that is run once more, alone, unless
// what it said is a verdict, which no second try takes back: lost or repeated messages, a broken order, a data race, a panic, a
// property that does not hold.
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
	listed, err := readFlaky(flakyList)
	if err != nil {
		return err
	}
	begun := time.Now()
	report := &report{out: out}
	if err := goTest(ctx, report, flags, packages); err != nil {
		return err
	}
	verdicts := judge(report.failures(), listed)
	var again []retried
	if !slices.ContainsFunc(verdicts, verdict.isFinal) {
		for _, v := range verdicts {
			second := &quiet{}
			err := goTest(ctx, second, append(slices.Clone(flags), "-count=1", "-run", "^"+v.test+"$"), []string{v.pkg})
			if err != nil {
				return err
			}
			again = append(again, retried{verdict: v, passed: len(second.failures()) == 0, output: second.output()})
		}
	}
	return summarize(out, report, verdicts, again, time.Since(begun))
}

// goTest runs go test and hands its events to a sink. Failing tests are no error.
func goTest(ctx context.Context, to sink, flags, packages []string) error {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-json"}, flags, packages)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	read := readEvents(stdout, to)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("run go test: %w", ctx.Err())
	case errors.As(err, &exit) && to.failed():
		return read
	case err != nil:
		return fmt.Errorf("run go test: %w, and no test says why", err)
	}
	return read
}
