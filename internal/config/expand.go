package config

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	reference = regexp.MustCompile(`\$?\$\{[^}]*\}?`)
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand replaces ${NAME} by the environment's value and $${ by ${. What it inserts is never looked at again, neither
// for references nor as YAML.
func expand(text string, lookup func(string) (string, bool)) (string, error) {
	var problem error
	out := reference.ReplaceAllStringFunc(text, func(match string) string {
		if strings.HasPrefix(match, "$$") {
			return match[1:]
		}
		name, closed := strings.CutSuffix(match[2:], "}")
		if !closed || !envName.MatchString(name) {
			problem = fmt.Errorf("holds %q that is no reference; write ${NAME}, or $${ for the characters themselves", "${")
			return ""
		}
		value, ok := lookup(name)
		if !ok {
			problem = fmt.Errorf("the environment has no variable %s; set it, or write $${%s} for the characters themselves", name, name)
		}
		return value
	})
	return out, problem
}
