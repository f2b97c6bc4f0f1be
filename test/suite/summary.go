package main

import (
	"cmp"
	"errors"
	"fmt"
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

// summarize prints what was run and returns errFailed unless all of it passed, now or by a second try that was
// allowed. broken is why the run could not be brought to its end.
func summarize(out io.Writer, r *report, verdicts []verdict, again []retried, broken error, took time.Duration) error {
	tests, packages := 0, 0
	var slowest []*testRun
	for _, p := range r.packages {
		if len(p.tests) > 0 || len(p.failing()) > 0 {
			packages++
		}
		tests += len(p.tests)
		slowest = append(slowest, p.tests...)
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
	ok := len(again) == len(verdicts) && tests > 0 && broken == nil
	if broken != nil {
		say(out, "FAILED     %v\n", broken)
	}
	if tests == 0 {
		say(out, "FAILED     no test was run: see whether -run and the packages are right\n")
	}
	if len(again) == 0 {
		say(out, "run again  nothing\n")
		failures := failureLines(verdicts)
		for _, line := range failures[:min(len(failures), shownFailures)] {
			say(out, "FAILED     %s\n", line)
		}
		if more := len(failures) - shownFailures; more > 0 {
			say(out, "FAILED     and %d more\n", more)
		}
	}
	for _, a := range again {
		word := "passed"
		if !a.passed {
			word, ok = "FAILED AGAIN", false
		}
		say(out, "run again  %s: %s (%s, since %s)\n", nameOf(a.pkg, a.test), word, a.listed.cause, a.listed.since.Format(time.DateOnly))
	}
	if !ok {
		return errFailed
	}
	say(out, "passed\n")
	return nil
}

// failureLines says what failed and why. Of a package that ended amid its tests they are one line.
func failureLines(verdicts []verdict) []string {
	const together = 5
	alike := map[verdict]int{}
	key := func(v verdict) verdict { return verdict{pkg: v.pkg, final: v.final} }
	for _, v := range verdicts {
		alike[key(v)]++
	}
	var lines []string
	for _, v := range verdicts {
		name, n := nameOf(v.pkg, v.test), alike[key(v)]
		if n > together {
			name = fmt.Sprintf("%s (%d tests)", v.pkg, n)
			alike[key(v)] = 0 // said once
		}
		if n > 0 {
			lines = append(lines, name+": "+cmp.Or(v.final, "not run again, since others are final"))
		}
	}
	return lines
}
