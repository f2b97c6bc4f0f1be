package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// flakyMost is how many tests may be listed. A longer list is no list of debts but a habit.
const flakyMost = 5

// flakyTest is a top-level test.
type flakyTest struct{ pkg, name string }

type flakyEntry struct {
	cause string
	since time.Time
}

// row is one line of the list's table: package, test, cause, since.
var row = regexp.MustCompile("^\\| *`([^`]+)` *\\| *`(Test\\w+)` *\\|([^|]*)\\|([^|]*)\\|$")

// readFlaky reads the list. An entry without its cause or date is an error, so that none is made in passing.
func readFlaky(path string) (map[flakyTest]flakyEntry, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the list of flaky tests: %w", err)
	}
	listed := map[flakyTest]flakyEntry{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if !strings.Contains(line, "`Test") || !strings.HasPrefix(line, "|") {
			continue
		}
		match := row.FindStringSubmatch(line)
		if match == nil {
			return nil, fmt.Errorf("%s: %q is not | `package` | `Test` | cause | since |", path, line)
		}
		entry := flakyEntry{cause: strings.TrimSpace(match[3])}
		if entry.since, err = time.Parse(time.DateOnly, strings.TrimSpace(match[4])); err != nil || entry.cause == "" {
			return nil, fmt.Errorf("%s: %s needs a cause and the day since when, such as 2026-01-31", path, match[2])
		}
		listed[flakyTest{match[1], match[2]}] = entry
	}
	if len(listed) > flakyMost {
		return nil, fmt.Errorf("%s lists %d tests, at most %d may be: mend some", path, len(listed), flakyMost)
	}
	return listed, nil
}
