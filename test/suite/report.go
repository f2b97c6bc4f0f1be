package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// slow is from when on a test's time is printed by itself.
const slow = 20 * time.Second

// report collects the events of a part and prints each package when it has ended.
type report struct {
	part     string
	took     time.Duration
	out      io.Writer
	verbose  bool // what passes is printed, too
	packages []*packageRun
	byPath   map[string]*packageRun
	builds   map[string]*strings.Builder // what the compiler said, by ImportPath
}

func (r *report) take(e *event) {
	switch {
	case strings.HasPrefix(e.Action, "build-"):
		r.built(e)
		return
	case e.Package == "":
		say(r.out, "%s", e.Output)
		return
	}
	p := r.at(e.Package)
	p.take(e)
	if e.Test == "" && outcomes(e.Action) != unfinished {
		if said := r.builds[e.FailedBuild]; said != nil {
			p.own.output.WriteString(said.String())
		}
		r.print(p)
	}
}

func (r *report) built(e *event) {
	if r.builds == nil {
		r.builds = map[string]*strings.Builder{}
	}
	if r.builds[e.ImportPath] == nil {
		r.builds[e.ImportPath] = &strings.Builder{}
	}
	r.builds[e.ImportPath].WriteString(e.Output)
}

// at returns a package's entry, made if needed.
func (r *report) at(path string) *packageRun {
	p := r.byPath[path]
	if p == nil {
		p = &packageRun{path: path, byName: map[string]*testRun{}}
		if r.byPath == nil {
			r.byPath = map[string]*packageRun{}
		}
		r.byPath[path] = p
		r.packages = append(r.packages, p)
	}
	return p
}

// close prints the packages that have not ended.
func (r *report) close() {
	for _, p := range r.packages {
		if p.own.outcome == unfinished {
			r.print(p)
		}
	}
}

// print shows one package that has ended: what failed in full, what was slow, and its own line.
func (r *report) print(p *packageRun) {
	failing := p.failing()
	if len(failing) == 0 && len(p.tests) == 0 {
		return // it has no tests
	}
	for _, t := range p.tests {
		if result := t.result(); result != passed || r.verbose {
			say(r.out, "--- %s %s, whose output was:\n%s", result, nameOf(p.path, t.name), t.output.String())
		}
		if t.took > slow {
			say(r.out, "       %6.1fs %s\n", t.took.Seconds(), t.name)
		}
	}
	if len(failing) > 0 { // with the seed of its shuffle
		say(r.out, "--- outside the tests of %s:\n%s", p.path, p.own.output.String())
	}
	word := p.own.outcome.String()
	if len(failing) > 0 {
		word = "FAIL"
	}
	say(r.out, "%-4s %7.1fs %4d tests  %s\n", word, p.own.took.Seconds(), len(p.tests), p.path)
}

// say prints to the log. One that can't be written is nothing that a test has done.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// nameOf names a test, or what its package does around its tests.
func nameOf(pkg, test string) string {
	if test == "" {
		return pkg + " (outside its tests)"
	}
	return pkg + " " + test
}

func (r *report) failures() []failure {
	var all []failure
	for _, p := range r.packages {
		for _, t := range p.failing() {
			all = append(all, failure{pkg: p, test: t})
		}
	}
	return all
}

func (r *report) failed() bool { return len(r.failures()) > 0 }

// hasRun reports whether a test was run, however it ended.
func (r *report) hasRun(pkg, test string) bool {
	p := r.byPath[pkg]
	return p != nil && p.byName[test] != nil
}

// count returns how many packages and tests there were.
func (r *report) count() (packages, tests int) {
	for _, p := range r.packages {
		if len(p.tests) > 0 || len(p.failing()) > 0 {
			packages++
		}
		tests += len(p.tests)
	}
	return packages, tests
}
