// Package nearest finds what a person may have meant by a word that does not exist.
package nearest

import "strings"

// Word returns the candidate that a word was probably meant to be, "" when none is near: the fewest typing errors apart, and
// no more than two or a third of the word.
func Word(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, bound := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		if d := distance(word, strings.ToLower(c)); d < bound && d < len(c) {
			best, bound = c, d
		}
	}
	return best
}

// Names returns the names of tables or databases that may have been meant, at most three, in their order: equal but for
// case, containing each other, or a few typing errors apart.
func Names(want string, names []string) []string {
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

// distance is the number of single-character edits between two words (Levenshtein).
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
