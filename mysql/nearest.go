package mysql

import (
	"strings"
)

// Nearest returns the names that a person may have meant, at most three: equal but for case, containing each other, or a
// few typing errors apart.
func Nearest(want string, names []string) []string {
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
