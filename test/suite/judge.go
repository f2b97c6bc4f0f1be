package main

import (
	"regexp"
	"strings"
)

// sign is what a line says when no second try may take it back.
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

// verdict is what a failure means for the run.
type verdict struct {
	pkg, test string // test is "" for what a package does around its tests
	// final is why it is not run again, "" when it is.
	final string
	// listed is the test's entry in the list of flaky ones.
	listed flakyEntry
}

func (v verdict) isFinal() bool { return v.final != "" }

// judge says for each failure whether it is final.
func judge(failures []failure, listed map[flakyTest]flakyEntry) []verdict {
	verdicts := make([]verdict, 0, len(failures))
	for _, f := range failures {
		entry, isListed := listed[flakyTest{f.pkg.path, f.test.name}]
		v := verdict{pkg: f.pkg.path, test: f.test.name, final: finality(f), listed: entry}
		if v.final == "" && !isListed {
			v.final = "a failure, and " + flakyList + " does not list the test"
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// finality returns why a failure would be final also of a test that is listed, "" when it would not.
func finality(f failure) string {
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
	return ""
}
