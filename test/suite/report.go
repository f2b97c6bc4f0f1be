package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// slow is from when on a test's time is printed by itself.
const slow = 20 * time.Second

// report collects the events of a run and prints each package when it has ended.
type report struct {
	out      io.Writer
	packages []*packageRun
	byPath   map[string]*packageRun
}

func (r *report) take(e event) {
	path := e.Package
	if path == "" {
		path, _, _ = strings.Cut(e.ImportPath, " ") // "a/b [a/b.test]"
	}
	if path == "" {
		_, _ = io.WriteString(r.out, e.Output)
		return
	}
	p := r.byPath[path]
	if p == nil {
		p = newPackageRun(path)
		if r.byPath == nil {
			r.byPath = map[string]*packageRun{}
		}
		r.byPath[path] = p
		r.packages = append(r.packages, p)
	}
	before := p.outcome
	p.take(&e)
	if p.outcome != before {
		r.print(p)
	}
}

// print shows one package that has ended: what failed in full, what was slow, and its own line.
func (r *report) print(p *packageRun) {
	if p.outcome == skipped && p.count() == 0 {
		return // it has no tests
	}
	for _, t := range p.failing() {
		say(r.out, "--- %s %s, whose output was:\n%s", notPassed(t), nameOf(p.path, t.name), t.output.String())
	}
	for _, t := range p.tests {
		if t.took > slow {
			say(r.out, "       %6.1fs %s\n", t.took.Seconds(), t.name)
		}
	}
	say(r.out, "%-4s %7.1fs %4d tests  %s\n", p.outcome, p.took.Seconds(), p.count(), p.path)
}

// say prints to the log. One that can't be written is nothing that a test has done.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

func notPassed(t *testRun) string {
	if t.outcome == unfinished {
		return "no end of"
	}
	return string(t.outcome)
}

// nameOf names a test, or what its package does around its tests.
func nameOf(pkg, test string) string {
	if test == "" {
		return pkg + " (outside its tests)"
	}
	return pkg + " " + test
}

// failure is one test that did not pass, or a package that failed by itself.
type failure struct {
	pkg  string
	test *testRun
	// around is what the package said outside its tests: a data race of another goroutine stands there.
	around string
}

func (r *report) failures() []failure {
	var all []failure
	for _, p := range r.packages {
		for _, t := range p.failing() {
			all = append(all, failure{pkg: p.path, test: t, around: p.tests[0].output.String()})
		}
	}
	return all
}

func (r *report) failed() bool { return len(r.failures()) > 0 }

// quiet is a report that prints nothing.
type quiet struct{ report }

func (q *quiet) take(e event) {
	q.out = io.Discard
	q.report.take(e)
}

// output returns what the failing tests said.
func (q *quiet) output() string {
	var b strings.Builder
	for _, f := range q.failures() {
		b.WriteString(f.test.output.String())
	}
	return b.String()
}
