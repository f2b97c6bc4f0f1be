package config

import "strings"

// distance is the number of single-character edits between two words (Levenshtein).
func distance(a, b string) int {
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current := make([]int, len(b)+1)
		current[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			current[j+1] = min(previous[j]+cost, previous[j+1]+1, current[j]+1)
		}
		previous = current
	}
	return previous[len(b)]
}

// nearest returns the candidate that word was probably meant to be, "" when none is near.
func nearest(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, bound := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		if d := distance(word, strings.ToLower(c)); d < bound && d < len(c) {
			best, bound = c, d
		}
	}
	return best
}
