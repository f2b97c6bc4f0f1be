package config

import (
	"reflect"
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

// setting is one value from the environment or a flag.
type setting struct {
	path  []string
	value *node
}

// fromEnvironment returns the settings among the environment's variables, so ordered that a list's items come in turn.
func fromEnvironment(environ []string, problems *problemList) []setting {
	var out []setting
	for _, line := range environ {
		name, text, _ := strings.Cut(line, "=")
		rest, ok := strings.CutPrefix(name, envPrefix)
		if !ok || serviceLink.MatchString(name) {
			continue
		}
		value := &node{kind: scalar, text: text, at: place{origin: environmentOrigin + name}, literal: true, flat: true}
		out = append(out, newSetting(strings.Split(strings.ToLower(rest), "__"), value, problems))
	}
	slices.SortStableFunc(out, func(a, b setting) int { return slices.CompareFunc(a.path, b.path, compareStep) })
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
	return envPrefix + strings.ToUpper(strings.ReplaceAll(indexed(path), ".", "__"))
}

// indexed turns sources[1].name into sources.1.name.
func indexed(path string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(path)
}

// fromFlags reads key.path=value, in the order given: the last one wins.
func fromFlags(sets []string, problems *problemList) []setting {
	var out []setting
	for _, s := range sets {
		key, text, ok := strings.Cut(s, "=")
		path := strings.Split(indexed(strings.TrimSpace(key)), ".")
		if !ok || slices.Contains(path, "") {
			// What stands there could be a secret: it is not repeated.
			problems.add("", place{origin: "--set"}, "must be key.path=value")
			continue
		}
		value := &node{kind: scalar, text: text, at: place{origin: "--set " + key}, flat: true}
		out = append(out, newSetting(path, value, problems))
	}
	return out
}

// newSetting reads the text as YAML where the setting is a mapping or a list and the text begins like one.
func newSetting(path []string, value *node, problems *problemList) setting {
	t := typeAt(path)
	bracket := ""
	switch {
	case t != nil && t.Kind() == reflect.Slice:
		bracket = "["
	case t != nil && (section(t) != nil || t == groupsType):
		bracket = "{"
	}
	if bracket == "" || !strings.HasPrefix(value.text, bracket) {
		return setting{path: path, value: value}
	}
	var found problemList
	tree := parse([]byte("value: "+value.text), value.at.origin, &found)
	if len(found.list) > 0 {
		problems.add(strings.Join(path, "."), value.at, "begins with a bracket but is no YAML; write [a, b] or {key: value}")
		return setting{path: path, value: &node{at: value.at}}
	}
	return setting{path: path, value: relocate(tree.field("value"), value.at, value.literal)}
}

// typeAt returns the type of the setting at a path, nil when there is none.
func typeAt(path []string) reflect.Type {
	t := reflect.TypeFor[Config]()
	for i, step := range path {
		if i == 0 && step == sourceKey {
			t = reflect.TypeFor[Source]()
			continue
		}
		if _, err := strconv.Atoi(step); err == nil && t.Kind() == reflect.Slice {
			t = t.Elem()
			continue
		}
		if t == groupsType {
			t = reflect.TypeFor[[]string]()
			continue
		}
		if t.Kind() == reflect.Slice || section(t) == nil {
			return nil
		}
		f, ok := fieldNamed(fieldsOf(section(t)), step)
		if !ok {
			return nil
		}
		t = f.typ
	}
	return t
}

// relocate gives every value of a tree that was written on one line the place of the whole.
func relocate(n *node, at place, literal bool) *node {
	if n == nil {
		return nil
	}
	out := &node{kind: n.kind, text: n.text, at: at, literal: literal}
	for _, e := range n.fields {
		out.fields = append(out.fields, entry{key: e.key, at: at, value: relocate(e.value, at, literal)})
	}
	for _, item := range n.items {
		out.items = append(out.items, relocate(item, at, literal))
	}
	return out
}
