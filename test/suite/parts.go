package main

import (
	"slices"
	"strings"
)

// part is a share of the tests, which go test runs at once.
type part struct {
	name     string
	packages []string
	flags    []string
}

// partsOf divides the tests of packages. Each test is in one part:
//
//   - unit: what needs no server, on all cores;
//   - servers: what uses servers, by names of its own, two packages at a time;
//   - stories: what is below test/ and uses servers, and brings load or servers of its own: one package at a time, or
//     they would starve each other into time-outs.
func partsOf(packages []source) []part {
	unit := part{name: "unit", flags: []string{"-tags", "unit"}}
	servers := part{name: "servers", flags: []string{"-p", "2"}}
	stories := part{name: "stories", flags: []string{"-p", "1"}}
	names := map[*part][]string{}
	for _, s := range packages {
		if len(s.unit) > 0 {
			unit.packages = append(unit.packages, s.path)
		}
		if len(s.servers) == 0 {
			continue
		}
		p := &servers
		if s.belowTest {
			p = &stories
		}
		p.packages = append(p.packages, s.path)
		names[p] = append(names[p], s.servers...)
	}
	parts := []part{unit}
	for _, p := range []*part{&servers, &stories} {
		// A unit test of the same name as another package's server test runs twice; none is left out.
		p.flags = append(p.flags, "-run", "^("+strings.Join(names[p], "|")+")$")
		parts = append(parts, *p)
	}
	return slices.DeleteFunc(parts, func(p part) bool { return len(p.packages) == 0 })
}

// chosen is the only part when flags of go test say by themselves what is run.
func chosen(packages []string) []part {
	return []part{{name: "chosen", packages: packages, flags: []string{"-p", "1"}}}
}

// chooses reports whether flags of go test say what is run.
func chooses(flags []string) bool {
	return slices.ContainsFunc(flags, func(flag string) bool {
		return slices.Contains([]string{"run", "skip", "tags", "fuzz"}, flagName(flag))
	})
}

func flagName(flag string) string {
	if !strings.HasPrefix(flag, "-") {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
	return name
}

// missing returns the tests that stand in the sources and were run in no part. There is none, unless the parts are wrong.
func missing(sources []source, played []*report) []verdict {
	var verdicts []verdict
	for _, s := range sources {
		for _, name := range s.all() {
			if !slices.ContainsFunc(played, func(r *report) bool { return r.hasRun(s.path, name) }) {
				verdicts = append(verdicts, verdict{pkg: s.path, test: name, why: "it stands in the sources, and no part has run it"})
			}
		}
	}
	return verdicts
}
