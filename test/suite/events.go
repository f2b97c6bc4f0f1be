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
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// sink takes events in their order.
type sink interface {
	take(event)
	failed() bool
}

// readEvents hands all events to a sink. Lines that are none go there as output of nobody.
func readEvents(from io.Reader, to sink) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "output", Output: string(line)}
			}
			to.take(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the events of go test: %w", err)
		}
	}
}

// outcome is how a test or a package ended.
type outcome string

const (
	unfinished outcome = "" // nothing was heard of its end: a panic, a time-out
	passed     outcome = "pass"
	failed     outcome = "fail"
	skipped    outcome = "skip"
)

// testRun is one test with its subtests, or what a package does around its tests, as TestMain.
type testRun struct {
	name    string // "" for the package itself
	outcome outcome
	took    time.Duration
	output  strings.Builder
}

// packageRun is one package's tests in the order in which they began.
type packageRun struct {
	path    string
	outcome outcome
	took    time.Duration
	tests   []*testRun
	byName  map[string]*testRun
}

func newPackageRun(path string) *packageRun {
	p := &packageRun{path: path, byName: map[string]*testRun{}}
	p.test("")
	return p
}

// test returns the top-level test of a name, made if needed.
func (p *packageRun) test(name string) *testRun {
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
	took := time.Duration(e.Elapsed * float64(time.Second))
	switch e.Action {
	case "output", "build-output":
		t.output.WriteString(e.Output)
	case "build-fail":
		p.outcome = failed
	case "pass", "fail", "skip":
		switch end := outcome(e.Action); {
		case e.Test == "":
			p.outcome, p.took = end, took
		case strings.Contains(e.Test, "/"):
			if end == skipped { // the test would hide it
				t.outcome = skipped
			}
		case t.outcome != skipped:
			t.outcome, t.took = end, took
		}
		if t.outcome == passed {
			t.output.Reset()
		}
	}
}

// failing returns what did not pass. Of a package that failed by itself, or as a whole, that is its own part.
func (p *packageRun) failing() []*testRun {
	var tests []*testRun
	for _, t := range p.tests[1:] {
		if t.outcome != passed {
			tests = append(tests, t)
		}
	}
	if len(tests) == 0 && p.outcome == failed {
		return p.tests[:1]
	}
	return tests
}

// count returns how many tests were run.
func (p *packageRun) count() int { return len(p.tests) - 1 }
