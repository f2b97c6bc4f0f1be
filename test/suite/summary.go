package main

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"time"
)

// shownSlowest and shownFailures keep the summary on one screen.
const shownSlowest, shownFailures = 5, 20

// retried is a listed test that was run once more.
type retried struct {
	verdict
	passed bool
	output string
}

// errFailed is that the tests did not pass; the summary says which.
var errFailed = errors.New("the tests did not pass")

// summarize prints what was run and returns errFailed unless all of it passed, now or by a second try that was allowed.
func summarize(out io.Writer, r *report, verdicts []verdict, again []retried, took time.Duration) error {
	tests, packages := 0, 0
	var slowest []*testRun
	for _, p := range r.packages {
		if p.count() > 0 || p.outcome == failed {
			packages++
		}
		tests += p.count()
		slowest = append(slowest, p.tests[1:]...)
	}
	slices.SortFunc(slowest, func(a, b *testRun) int { return cmp.Compare(b.took, a.took) })
	for _, a := range again {
		if !a.passed {
			say(out, "--- %s, run again, said:\n%s", nameOf(a.pkg, a.test), a.output)
		}
	}
	say(out, "\n==== %d packages, %d tests, %s ====\n", packages, tests, took.Round(time.Second))
	for _, t := range slowest[:min(len(slowest), shownSlowest)] {
		say(out, "slowest    %6.1fs %s\n", t.took.Seconds(), t.name)
	}
	ok := len(again) == len(verdicts)
	if len(again) == 0 {
		say(out, "run again  nothing\n")
		shown := verdicts[:min(len(verdicts), shownFailures)]
		for _, v := range shown {
			say(out, "FAILED     %s: %s\n", nameOf(v.pkg, v.test), cmp.Or(v.final, "not run again, since others are final"))
		}
		if more := len(verdicts) - len(shown); more > 0 {
			say(out, "FAILED     and %d more\n", more)
		}
	}
	for _, a := range again {
		word := "passed"
		if !a.passed {
			word, ok = "FAILED AGAIN", false
		}
		say(out, "run again  %s: %s (%s)\n", nameOf(a.pkg, a.test), word, a.cause)
	}
	if !ok {
		return errFailed
	}
	say(out, "passed\n")
	return nil
}
