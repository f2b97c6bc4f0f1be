package main

import "regexp"

// signs are what a failure says when no second try may take it back.
func signs() []sign {
	return []sign{
		{"a data race", regexp.MustCompile(`WARNING: DATA RACE`)},
		{"a panic", regexp.MustCompile(`(?m)^\s*(panic:|fatal error:|SIG[A-Z]+: )|the relay's log has "(panic|fatal error):"`)},
		{"a verdict of the oracle", regexp.MustCompile(`verdict: |(?m)^\s*FAULT |Messages:\s+copies`)},
		{"a property that does not hold", regexp.MustCompile(`\[rapid\] (failed|panic|flaky)`)},
	}
}

type sign struct {
	what    string
	pattern *regexp.Regexp
}

// verdict is what a failure means for the run.
type verdict struct {
	pkg, test string // test is "" for what a package does around its tests
	// final is why it is not run again, "" when it is.
	final string
	// cause is why the test is listed as flaky.
	cause string
}

func (v verdict) isFinal() bool { return v.final != "" }

// judge says for each failure whether it is final.
func judge(failures []failure, listed map[flakyTest]flakyEntry) []verdict {
	verdicts := make([]verdict, 0, len(failures))
	for _, f := range failures {
		v := verdict{pkg: f.pkg, test: f.test.name}
		entry, isListed := listed[flakyTest{f.pkg, f.test.name}]
		v.cause = entry.cause
		v.final = finality(f)
		if v.final == "" && !isListed {
			v.final = "a failure, and " + flakyList + " does not list the test"
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// finality returns why a failure would be final also of a test that is listed, "" when it would not.
func finality(f failure) string {
	for _, s := range signs() {
		if s.pattern.MatchString(f.test.output.String()) || s.pattern.MatchString(f.around) {
			return s.what
		}
	}
	switch {
	case f.test.name == "":
		return "the package failed outside its tests"
	case f.test.outcome == unfinished:
		return "it never came to an end"
	case f.test.outcome == skipped:
		return "it was skipped: what it needs is missing"
	}
	return ""
}
