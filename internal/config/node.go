package config

import (
	"slices"
	"strconv"
	"strings"
)

type kind uint8

const (
	null kind = iota
	scalar
	mapping
	list
)

// what a kind is called in a message.
func (k kind) String() string {
	return [...]string{"nothing", "a value", "a mapping", "a list"}[k]
}

// node is a value as it was written, before its setting's type is known. Scalars keep their text, so that a password of
// 0123 stays one. Nodes are never changed once built: an alias shares its anchor's.
type node struct {
	kind    kind
	text    string // of a scalar, and of every flat node
	fields  []entry
	items   []*node
	at      place
	literal bool // ${NAME} is not expanded: the value came from the environment already
	hide    bool // came from a reference to the environment: a message does not repeat it
	flat    bool // from the environment or a flag: its text counts where the setting is neither a list nor a mapping
}

type entry struct {
	key   string
	at    place
	value *node
}

func (n *node) field(key string) *node {
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(n.fields, func(e entry) bool { return e.key == key })
	if i < 0 {
		return nil
	}
	return n.fields[i].value
}

// find returns the node at a path such as sources[1].name. When it was not written, exact is false and the node is the
// nearest one above it; nil when nothing of the path was written.
func (n *node) find(path string) (found *node, exact bool) {
	for _, step := range steps(path) {
		next := n.field(step)
		if i, err := strconv.Atoi(step); err == nil && n != nil && i >= 0 && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil {
			return found, false
		}
		n, found = next, next
	}
	return found, true
}

// steps splits sources[1].name and sources.1.name into their three steps.
func steps(path string) []string {
	return strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(path), ".")
}

// given reports whether the node says something: not null and not empty text.
func (n *node) given() bool {
	return n != nil && n.kind != null && (n.kind != scalar || n.text != "")
}

// referring reports whether the value comes from the environment by a ${NAME} in it. That may be a secret, by mistake,
// in a setting that is none.
func (n *node) referring() bool {
	return n.hide || !n.literal && strings.Contains(n.text, "${")
}

// unread reports whether the text of the environment or of a flag begins with a bracket and is not YAML.
func (n *node) unread(bracket string) bool {
	return n.flat && n.kind == scalar && strings.HasPrefix(n.text, bracket)
}

// with returns a copy of the mapping with one more or one other field; of anything else, a mapping of that field alone.
func (n *node) with(key string, at place, value *node) *node {
	out := &node{kind: mapping, at: at}
	if n != nil && n.kind == mapping {
		out = n.without(key)
	}
	out.fields = append(out.fields, entry{key: key, at: at, value: value})
	return out
}

func (n *node) without(key string) *node {
	out := &node{kind: mapping, at: n.at}
	for _, e := range n.fields {
		if e.key != key {
			out.fields = append(out.fields, e)
		}
	}
	return out
}

// overlay returns n with the value at path replaced; the nodes on the way are copied, the others shared. Setting x
// removes x_file and the other way round, so that a stronger origin overrules a weaker one in either form.
func overlay(n *node, path []string, value *node) *node {
	if len(path) == 0 {
		return merge(n, value)
	}
	if n != nil && (n.unread("[") || n.unread("{")) {
		return n // what is wrong with it must not go unreported
	}
	step, rest := path[0], path[1:]
	if i, err := strconv.Atoi(step); err == nil && n.hasRoom(i) {
		return overlayItem(n, i, rest, value)
	}
	if len(rest) == 0 && n != nil && n.kind == mapping {
		if base, ok := strings.CutSuffix(step, "_file"); ok {
			n = n.without(base)
		} else {
			n = n.without(step + "_file")
		}
	}
	return n.with(step, value.at, overlay(n.field(step), rest, value))
}

// hasRoom reports whether n is a list with an item i, or to which that one can be appended. Nothing is an empty list.
func (n *node) hasRoom(i int) bool {
	if n == nil || n.kind == null {
		return i == 0
	}
	return n.kind == list && i >= 0 && i <= len(n.items)
}

// overlayItem replaces or appends one item of a list.
func overlayItem(n *node, i int, rest []string, value *node) *node {
	out := &node{kind: list, at: value.at}
	if n != nil {
		out.items = slices.Clone(n.items)
	}
	if i == len(out.items) {
		out.items = append(out.items, nil)
	}
	out.items[i] = overlay(out.items[i], rest, value)
	return out
}

// merge lays a mapping over another field by field; anything else replaces.
func merge(under, over *node) *node {
	if under == nil || under.kind != mapping || over.kind != mapping {
		return over
	}
	out := under
	for _, e := range over.fields {
		out = overlay(out, []string{e.key}, e.value)
	}
	if over.flat {
		out = &node{kind: mapping, fields: out.fields, at: out.at, text: over.text, literal: over.literal, flat: true}
	}
	return out
}
