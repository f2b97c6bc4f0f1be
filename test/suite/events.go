package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// event is one line of go test -json (see go doc test2json).
type event struct {
	Time        time.Time
	Action      string
	Package     string
	ImportPath  string // of build events
	FailedBuild string // the ImportPath that a package could not be built for
	Test        string
	Elapsed     float64 // seconds
	Output      string
}

// readEvents gives all events to a report. Lines that are none are output of nobody.
func readEvents(from io.Reader, to *report) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "output", Output: string(line)}
			}
			to.take(&e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the events of go test: %w", err)
		}
	}
}

// outcome is how a test or a package ended. A worse one is not taken back, for example by another round of -count.
type outcome uint8

const (
	unfinished outcome = iota // nothing was heard of its end: a panic, a time-out
	passed
	skipped
	failed
)

func (o outcome) String() string { return [...]string{"no end of", "pass", "skip", "fail"}[o] }

// outcomes are the actions that end something.
func outcomes(action string) outcome {
	return map[string]outcome{"pass": passed, "skip": skipped, "fail": failed}[action]
}

// testRun is one test with its subtests, or what a package does around its tests, as TestMain.
type testRun struct {
	name    string // "" for the package itself
	outcome outcome
	open    int // rounds that have begun and not ended
	clock   clock
	took    time.Duration // in all rounds
	output  strings.Builder
}

// take takes what happens to the test or to one of its parts.
func (t *testRun) take(e *event) {
	switch e.Action {
	case "run", "cont":
		t.clock.goesOn(e.Test, e.Time)
		if e.Action == "run" && e.Test == t.name {
			t.open++
		}
	case "pause":
		t.clock.stands(e.Test, e.Time)
	case "pass", "skip", "fail":
		t.outcome = max(t.outcome, outcomes(e.Action)) // also of a part: a test itself hides that a part was skipped
		t.clock.stands(e.Test, e.Time)
		if e.Test == t.name {
			t.open--
			t.took += max(time.Duration(e.Elapsed*float64(time.Second)), t.clock.total())
			t.clock = clock{}
		}
	}
}

func (t *testRun) result() outcome {
	if t.open > 0 && t.outcome != failed {
		return unfinished
	}
	return t.outcome
}

// packageRun is one package's tests in the order in which they began.
type packageRun struct {
	path     string
	own      testRun // what is said and done around the tests
	saidPass bool    // as each package does that has run to its end: not one that exits by itself
	unbuilt  bool
	sign     string // of a verdict that may stand with the wrong test
	tests    []*testRun
	byName   map[string]*testRun
}

// test returns the top-level test of a name, made if needed.
func (p *packageRun) test(name string) *testRun {
	if name == "" {
		return &p.own
	}
	top, _, _ := strings.Cut(name, "/")
	t := p.byName[top]
	if t == nil {
		t = &testRun{name: top}
		p.byName[top] = t
		p.tests = append(p.tests, t)
	}
	return t
}

// take takes one event of the package.
func (p *packageRun) take(e *event) {
	t := p.test(e.Test)
	t.take(e)
	switch e.Action {
	case "output":
		p.saidPass = p.saidPass || e.Test == "" && e.Output == "PASS\n"
		if p.sign == "" {
			p.sign = signIn(e.Output, true)
		}
		if !isProgress(e.Output) {
			t.output.WriteString(e.Output)
		}
	case "pass", "skip", "fail":
		p.unbuilt = p.unbuilt || e.FailedBuild != ""
	}
}

// isProgress reports whether a line only says how far the tests are.
func isProgress(line string) bool {
	line = strings.TrimLeft(line, " ")
	return strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- PASS")
}

// ended reports whether the package has run to its end.
func (p *packageRun) ended() bool {
	return p.own.outcome == skipped || p.own.outcome == passed && p.saidPass || p.own.outcome == failed
}

// failing returns what did not pass: tests, and the package's own part when they do not explain how it ended.
func (p *packageRun) failing() []*testRun {
	var tests []*testRun
	for _, t := range p.tests {
		if t.result() != passed {
			tests = append(tests, t)
		}
	}
	if !p.ended() || p.own.outcome == failed && len(tests) == 0 {
		tests = append(tests, &p.own)
	}
	return tests
}
