package main

import (
	"regexp"
	"strings"
)

// sign is what a line says that explains a failure better than that the test failed.
type sign struct {
	what    string
	pattern *regexp.Regexp
	// anywhere: the line is printed past the test's log, and so may stand with another test that ran at the time.
	anywhere bool
}

var signs = [...]sign{
	{"a data race", regexp.MustCompile(`WARNING: DATA RACE|race detected during execution of test`), true},
	{"a panic", regexp.MustCompile(`panic: |fatal error: |^SIG[A-Z]+: |has "(panic|fatal error):"`), true},
	{"a verdict of the oracle", regexp.MustCompile(`verdict: |^\s*FAULT |Messages:\s+copies`), false},
	{"a property that does not hold", regexp.MustCompile(`\[rapid\] (failed|panic|flaky)`), false},
}

// signIn returns what sign a line has, "" for none. misplaced asks only for those that may stand with another test.
func signIn(line string, misplaced bool) string {
	for _, s := range signs {
		if (s.anywhere || !misplaced) && s.pattern.MatchString(line) {
			return s.what
		}
	}
	return ""
}

// failure is one test that did not pass, or a package that failed by itself.
type failure struct {
	pkg  *packageRun
	test *testRun
}

// verdict is a failure with its reason.
type verdict struct {
	pkg, test string // test is "" for what a package does around its tests
	why       string
}

// judge returns the reason of each failure.
func judge(failures []failure) []verdict {
	verdicts := make([]verdict, 0, len(failures))
	for _, f := range failures {
		verdicts = append(verdicts, verdict{pkg: f.pkg.path, test: f.test.name, why: reason(f)})
	}
	return verdicts
}

func reason(f failure) string {
	if f.pkg.sign != "" {
		return f.pkg.sign + " in its package"
	}
	for _, said := range []string{f.test.output.String(), f.pkg.own.output.String()} {
		for line := range strings.Lines(said) {
			if what := signIn(line, false); what != "" {
				return what
			}
		}
	}
	switch {
	case f.pkg.unbuilt:
		return "it does not build"
	case f.test.name == "" && !f.pkg.ended():
		return "the package never came to its end"
	case f.test.name == "":
		return "the package failed outside its tests"
	case f.test.result() == unfinished:
		return "it never came to an end"
	case f.test.result() == skipped:
		return "it was skipped: what it needs is missing"
	}
	return "it failed"
}
