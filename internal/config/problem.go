package config

import (
	"fmt"
	"slices"
	"strings"
)

// place is where a value was written.
type place struct {
	origin string // the file, "environment OUTBOX_RELAY_X", "--set key.path"; "" for a default
	line   int    // 1-based, 0 outside a file
	column int
}

// Problem is one thing wrong with the configuration.
type Problem struct {
	Path    string `json:"path"`             // the key, as kafka.brokers or sources[1].name; "" for the file itself
	Origin  string `json:"origin,omitempty"` // the file, the environment variable or the flag that said so
	Line    int    `json:"line,omitempty"`   // 1-based, 0 when it does not come from a file
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"` // what is wrong and what to do
}

// String returns origin:line:column: path: message, as compilers print it.
func (p Problem) String() string {
	var parts []string
	switch {
	case p.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d:%d", p.Origin, p.Line, p.Column))
	case p.Origin != "":
		parts = append(parts, p.Origin)
	}
	if p.Path != "" {
		parts = append(parts, p.Path)
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// Error is everything wrong with a configuration.
type Error struct{ Problems []Problem }

// Error returns one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	noun := "problems"
	if len(e.Problems) == 1 {
		noun = "problem"
	}
	lines = append(lines, fmt.Sprintf("%d %s in the configuration:", len(e.Problems), noun))
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}

// problemList gathers what is wrong, in the order of the file.
type problemList struct{ list []Problem }

func (p *problemList) add(path string, at place, format string, args ...any) {
	p.list = append(p.list, Problem{
		Path: path, Origin: at.origin, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...),
	})
}

func (p *problemList) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return &Error{Problems: p.list}
}
