package canal

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"example.com/outbox-relay/outbox"
)

// Patterns tells the local message tables from all others. A pattern is database.table; each part is a name, or a
// regular expression between slashes that must match the whole name: app./local_message_\d+/ .
type Patterns struct {
	list    []pattern
	fold    bool
	history string // names the history of a table, "" when there is none
}

// pattern matches one database.table.
type pattern struct {
	text            string
	database, table part
}

// part is a name or a regular expression, each also in the form that ignores case.
type part struct {
	name         string
	expr, folded *regexp.Regexp
}

// ParsePatterns reads patterns. Names are compared exactly until FoldCase says otherwise.
func ParsePatterns(texts []string) (Patterns, error) {
	var (
		p        Patterns
		problems []error
	)
	if len(texts) == 0 {
		problems = append(problems, errors.New("no tables: give at least one database.table"))
	}
	for _, text := range texts {
		one, err := parsePattern(text)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		p.list = append(p.list, one)
	}
	return p, errors.Join(problems...)
}

func parsePattern(text string) (pattern, error) {
	database, rest, err := parsePart(text)
	if err != nil {
		return pattern{}, fmt.Errorf("table pattern %q: %w", text, err)
	}
	if !strings.HasPrefix(rest, ".") {
		return pattern{}, fmt.Errorf("table pattern %q: write database.table", text)
	}
	table, rest, err := parsePart(rest[1:])
	if err != nil {
		return pattern{}, fmt.Errorf("table pattern %q: %w", text, err)
	}
	if rest != "" {
		return pattern{}, fmt.Errorf("table pattern %q: %q is left over, write database.table", text, rest)
	}
	return pattern{text: text, database: database, table: table}, nil
}

// parsePart reads a name up to the next dot, or an expression up to its closing slash.
func parsePart(text string) (part, string, error) {
	if !strings.HasPrefix(text, "/") {
		name, rest := text, ""
		if dot := strings.IndexByte(text, '.'); dot >= 0 {
			name, rest = text[:dot], text[dot:]
		}
		if name == "" {
			return part{}, "", errors.New("a name is empty")
		}
		return part{name: name}, rest, nil
	}
	end := strings.IndexByte(text[1:], '/')
	if end < 0 {
		return part{}, "", errors.New("the closing slash of the expression is missing")
	}
	source := text[1 : 1+end]
	expr, err := regexp.Compile(`^(?:` + source + `)$`)
	if err != nil {
		return part{}, "", fmt.Errorf("expression %q: %w", source, err)
	}
	folded, err := regexp.Compile(`^(?i:` + source + `)$`)
	if err != nil {
		return part{}, "", fmt.Errorf("expression %q: %w", source, err)
	}
	return part{expr: expr, folded: folded}, text[end+2:], nil
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

// Match reports whether the table is a local message table.
func (p Patterns) Match(t outbox.Table) bool {
	if !p.names(t) {
		return false
	}
	base, ok := outbox.HistoryBase(p.history, t.Name, p.fold)
	return !ok || !p.names(outbox.Table{Database: t.Database, Name: base})
}

// names reports whether some pattern names the table.
func (p Patterns) names(t outbox.Table) bool {
	for i := range p.list {
		if p.list[i].database.match(t.Database, p.fold) && p.list[i].table.match(t.Name, p.fold) {
			return true
		}
	}
	return false
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
