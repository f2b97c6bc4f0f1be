package mysql

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"example.com/outbox-relay/outbox"
)

// Pattern is one entry of the configured list of tables: `database.table`. Each part is a name without dots and slashes, or
// a regular expression between slashes that must match the whole name, such as `app./local_message_\d+/`.
//
// An expression ends at the next slash. A name with a dot in it is written as an expression (`app./x\.y/`), and so is one with a
// slash (`app./x\x2fy/`): three parts are far more often a mistake than a dot in a name, and a slash that might end an
// expression or stand in it would be read by luck.
type Pattern struct {
	text            string
	database, table part
}

// part is a name or a regular expression, each also in the form that ignores case.
type part struct {
	name         string
	expr, folded *regexp.Regexp
}

// PatternError is what is wrong with an entry of the list of tables.
type PatternError struct {
	// Text is the entry.
	Text string
	// Problem says what it must be, to be read behind the entry.
	Problem string
}

// Error names the entry and what it must be.
func (e *PatternError) Error() string { return fmt.Sprintf("table pattern %q %s", e.Text, e.Problem) }

const (
	notPattern    = `must be database.table; a part between slashes is a regular expression, as in app./local_message_\d+/`
	notExpression = "holds no regular expression between its slashes; mind the brackets and backslashes"
)

// patternForm is a pattern by its slashes and dots.
var patternForm = regexp.MustCompile(`^(/[^/]+/|[^/.]+)\.(/[^/]+/|[^/.]+)$`)

// ParsePattern reads one entry. An error is a *PatternError.
func ParsePattern(text string) (Pattern, error) {
	parts := patternForm.FindStringSubmatch(text)
	if parts == nil {
		return Pattern{}, &PatternError{Text: text, Problem: notPattern}
	}
	p := Pattern{text: text}
	var err, err2 error
	p.database, err = newPart(parts[1])
	p.table, err2 = newPart(parts[2])
	if err != nil || err2 != nil {
		return Pattern{}, &PatternError{Text: text, Problem: notExpression}
	}
	return p, nil
}

func newPart(text string) (p part, err error) {
	source, isExpression := strings.CutPrefix(text, "/")
	if !isExpression {
		return part{name: text}, nil
	}
	source = strings.TrimSuffix(source, "/")
	if p.expr, err = regexp.Compile(`^(?:` + source + `)$`); err != nil {
		return part{}, err
	}
	p.folded, err = regexp.Compile(`^(?i:` + source + `)$`)
	return p, err
}

func (p *part) match(name string, fold bool) bool {
	switch {
	case p.expr == nil && fold:
		return strings.EqualFold(p.name, name)
	case p.expr == nil:
		return p.name == name
	case fold:
		return p.folded.MatchString(name)
	}
	return p.expr.MatchString(name)
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// Table returns the one table that the pattern names; ok is false when one of its parts is an expression.
func (p Pattern) Table() (t outbox.Table, ok bool) {
	return outbox.Table{Database: p.database.name, Name: p.table.name}, p.database.expr == nil && p.table.expr == nil
}

// Match reports whether the pattern names the table. With fold, case is ignored.
func (p *Pattern) Match(t outbox.Table, fold bool) bool {
	return p.database.match(t.Database, fold) && p.table.match(t.Name, fold)
}

// Patterns tells the local message tables from all others. It is a value: FoldCase and Excluding return another one.
type Patterns struct {
	list    []Pattern
	fold    bool
	history string // names the history of a table, "" when there is none
}

// ParsePatterns reads a list of patterns and returns every problem of it. Names are compared exactly until FoldCase says
// otherwise.
func ParsePatterns(texts []string) (Patterns, error) {
	var (
		p        Patterns
		problems []error
	)
	if len(texts) == 0 {
		problems = append(problems, errors.New("tables is empty: name at least one database.table"))
	}
	for _, text := range texts {
		one, err := ParsePattern(text)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		p.list = append(p.list, one)
	}
	return p, errors.Join(problems...)
}

// FoldCase returns the patterns with case ignored or not, as the server's lower_case_table_names demands: with 0 names
// differ by case, with 1 and 2 they don't.
func (p Patterns) FoldCase(fold bool) Patterns {
	p.fold = fold
	return p
}

// Excluding returns the patterns without the tables that are the history of another one that matches; template says how
// those are called, "" that there are none.
func (p Patterns) Excluding(template string) Patterns {
	p.history = template
	return p
}

// All returns each pattern, in the order of the list.
func (p Patterns) All() []Pattern { return p.list }

// Match reports whether the table is a local message table.
func (p Patterns) Match(t outbox.Table) bool { return p.Names(t) && !p.IsHistory(t) }

// Names reports whether some pattern names the table, be it a history or not.
func (p Patterns) Names(t outbox.Table) bool {
	for i := range p.list {
		if p.list[i].Match(t, p.fold) {
			return true
		}
	}
	return false
}

// IsHistory reports whether the table is, by its name, the history of a table that some pattern names.
func (p Patterns) IsHistory(t outbox.Table) bool {
	base, ok := outbox.HistoryBase(p.history, t.Name, p.fold)
	return ok && p.Names(outbox.Table{Database: t.Database, Name: base})
}

// MatchName reports whether a table of that name would be a local message table in some database.
func (p Patterns) MatchName(name string) bool {
	for i := range p.list {
		if p.list[i].table.match(name, p.fold) {
			return true
		}
	}
	return false
}

// MatchDatabase reports whether some local message table may be in the database.
func (p Patterns) MatchDatabase(name string) bool {
	for i := range p.list {
		if p.list[i].database.match(name, p.fold) {
			return true
		}
	}
	return false
}
