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

// errFailed is that the tests did not pass; the summary says which.
var errFailed = errors.New("the tests did not pass")

// summarize prints what was run and returns errFailed unless all of it passed. broken is why the run could not be brought
// to its end.
func summarize(out io.Writer, parts []*report, verdicts []verdict, broken error) error {
	say(out, "\n====\n")
	tests := 0
	var took time.Duration
	var slowest []*testRun
	for _, r := range parts {
		inPackages, inPart := r.count()
		say(out, "%-10s %8s %3d packages, %d tests\n", r.part, r.took.Round(time.Second), inPackages, inPart)
		tests, took = tests+inPart, took+r.took
		for _, p := range r.packages {
			slowest = append(slowest, p.tests...)
		}
	}
	say(out, "%-10s %8s\n", "together", took.Round(time.Second))
	slices.SortFunc(slowest, func(a, b *testRun) int { return cmp.Compare(b.took, a.took) })
	for _, t := range slowest[:min(len(slowest), shownSlowest)] {
		say(out, "slowest    %7.1fs %s\n", t.took.Seconds(), t.name)
	}
	if broken != nil {
		say(out, "FAILED     %v\n", broken)
	}
	if tests == 0 {
		say(out, "FAILED     no test was run: see whether -run and the packages are right\n")
	}
	failures := failureLines(verdicts)
	for _, line := range failures[:min(len(failures), shownFailures)] {
		say(out, "FAILED     %s\n", line)
	}
	if more := len(failures) - shownFailures; more > 0 {
		say(out, "FAILED     and %d more\n", more)
	}
	if broken != nil || tests == 0 || len(failures) > 0 {
		return errFailed
	}
	say(out, "passed\n")
	return nil
}

// failureLines says what failed and why. Of a package that ended amid its tests they are one line.
func failureLines(verdicts []verdict) []string {
	const together = 5
	alike := map[verdict]int{}
	key := func(v verdict) verdict { return verdict{pkg: v.pkg, why: v.why} }
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
			lines = append(lines, name+": "+v.why)
		}
	}
	return lines
}
