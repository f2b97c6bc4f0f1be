package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	envPrefix         = "OUTBOX_RELAY_"
	environmentOrigin = "environment "
)

// serviceLink matches what Kubernetes puts into every container for a Service that is called outbox-relay. Nobody wrote
// these, so they are no unknown keys.
var serviceLink = regexp.MustCompile(`^OUTBOX_RELAY_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// override is one value from the environment or a flag.
type override struct {
	path  []string
	value *node
}

// fromEnvironment returns the settings among the environment's variables, so ordered that a list's items come in turn.
func fromEnvironment(environ []string) []override {
	var out []override
	for _, line := range environ {
		name, text, _ := strings.Cut(line, "=")
		rest, ok := strings.CutPrefix(name, envPrefix)
		if !ok || serviceLink.MatchString(name) {
			continue
		}
		value := flatNode(text, place{origin: environmentOrigin + name}, true)
		out = append(out, override{path: strings.Split(strings.ToLower(rest), "__"), value: value})
	}
	slices.SortStableFunc(out, func(a, b override) int { return slices.CompareFunc(a.path, b.path, compareStep) })
	return out
}

// compareStep orders numbers by value and words as text.
func compareStep(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return x - y
	}
	return strings.Compare(a, b)
}

// variable is the name of the environment variable that sets a path.
func variable(path string) string {
	return envPrefix + strings.ToUpper(strings.Join(steps(path), "__"))
}

// fromFlags reads key.path=value, in the order given: the last one wins.
func fromFlags(sets []string, problems *problemList) []override {
	var out []override
	for _, s := range sets {
		key, text, ok := strings.Cut(s, "=")
		path := steps(strings.TrimSpace(key))
		if !ok || slices.Contains(path, "") {
			// What stands there could be a secret: it is not repeated.
			problems.add("", place{origin: "--set"}, "must be key.path=value")
			continue
		}
		out = append(out, override{path: path, value: flatNode(text, place{origin: "--set " + key}, false)})
	}
	return out
}

// flatNode reads text that was written on one line. What begins with a bracket and is YAML is a list or a mapping, if
// the setting is one; otherwise the text counts, as for {table}_history.
func flatNode(text string, at place, literal bool) *node {
	out := &node{kind: scalar, text: text, at: at, literal: literal, flat: true}
	if !out.unread("[") && !out.unread("{") {
		return out
	}
	var found problemList
	c := converter{problems: &found, line: &at, literal: literal}
	tree := c.document([]byte("value: " + text)).field("value")
	if tree != nil && len(found.list) == 0 {
		out.kind, out.fields, out.items = tree.kind, tree.fields, tree.items
	}
	return out
}
