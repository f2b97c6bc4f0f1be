package store

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// pattern is one entry of the configured list of tables: `database.table`, where a part between slashes is a regular
// expression that must match the whole name, such as `app./local_message_\d+/`.
type pattern struct {
	text            string
	database, table matcher
}

// matcher matches one whole name.
type matcher struct {
	literal string
	re      *regexp.Regexp // nil for a literal
	fold    bool
}

func (m matcher) match(name string) bool {
	if m.re != nil {
		return m.re.MatchString(name)
	}
	return name == m.literal || (m.fold && strings.EqualFold(name, m.literal))
}

// parsePattern reads one entry. fold is whether the server compares names without regard to case.
func parsePattern(text string, fold bool) (pattern, error) {
	database, rest, err := cutPart(text, true)
	if err != nil {
		return pattern{}, fmt.Errorf("table pattern %q: %w", text, err)
	}
	table, _, err := cutPart(rest, false)
	if err != nil {
		return pattern{}, fmt.Errorf("table pattern %q: %w", text, err)
	}
	p := pattern{text: text}
	if p.database, err = newMatcher(database, fold); err != nil {
		return pattern{}, fmt.Errorf("table pattern %q: %w", text, err)
	}
	if p.table, err = newMatcher(table, fold); err != nil {
		return pattern{}, fmt.Errorf("table pattern %q: %w", text, err)
	}
	return p, nil
}

// cutPart splits off the first part, up to the dot that follows it when there must be another.
func cutPart(text string, another bool) (part, rest string, err error) {
	end := len(text)
	if another {
		end = strings.IndexByte(text, '.')
	}
	if strings.HasPrefix(text, "/") {
		end = len(text)
		if another {
			end = strings.Index(text, "/.") + 1
		}
		if end < 2 || text[end-1] != '/' {
			return "", "", errors.New("a part that begins with a slash must end with one")
		}
	}
	if end <= 0 {
		return "", "", errors.New("write database.table")
	}
	if another {
		return text[:end], text[end+1:], nil
	}
	return text, "", nil
}

func newMatcher(part string, fold bool) (matcher, error) {
	if !strings.HasPrefix(part, "/") || len(part) < 2 {
		return matcher{literal: part, fold: fold}, nil
	}
	prefix := "^(?:"
	if fold {
		prefix = "(?i)^(?:"
	}
	re, err := regexp.Compile(prefix + part[1:len(part)-1] + ")$")
	if err != nil {
		return matcher{}, err
	}
	return matcher{re: re}, nil
}

// nearest returns the names that a person may have meant, at most three: equal but for case, containing each other, or a
// few typing errors apart.
func nearest(want string, names []string) []string {
	var near []string
	lower := strings.ToLower(want)
	for _, name := range names {
		other := strings.ToLower(name)
		if len(near) < 3 && (strings.Contains(other, lower) || strings.Contains(lower, other) || distance(lower, other) <= 1+len(lower)/6) {
			near = append(near, name)
		}
	}
	return near
}

// distance is the number of single-character edits between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		corner := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			corner, row[j] = row[j], min(row[j]+1, row[j-1]+1, corner+cost)
		}
	}
	return row[len(b)]
}
