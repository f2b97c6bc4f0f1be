package config

import (
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

// node is a value as it was written, before anyone knows what type it should have. Scalars keep their text, so that a
// password of 0123 stays one. Nodes are never changed once built: an alias shares its anchor's.
type node struct {
	kind    kind
	text    string
	fields  []entry
	items   []*node
	at      place
	literal bool // ${NAME} is not expanded: the value came from the environment already
	hide    bool // came from a reference to the environment: a message does not repeat it
	flat    bool // text that may stand for a list or a mapping: it came from the environment or a flag
}

type entry struct {
	key   string
	at    place
	value *node
}

func (n *node) field(key string) *node {
	if n == nil || n.kind != mapping {
		return nil
	}
	for _, e := range n.fields {
		if e.key == key {
			return e.value
		}
	}
	return nil
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

// with returns a copy of the mapping with one more or one other field.
func (n *node) with(key string, at place, value *node) *node {
	out := &node{kind: mapping, at: at}
	if n != nil && n.kind == mapping {
		out.at = n.at
		for _, e := range n.fields {
			if e.key != key {
				out.fields = append(out.fields, e)
			}
		}
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
	step := path[0]
	if i, err := strconv.Atoi(step); err == nil && i >= 0 {
		if out := overlayItem(n, i, path[1:], value); out != nil {
			return out
		}
	}
	if len(path) == 1 && n != nil && n.kind == mapping {
		if base, ok := strings.CutSuffix(step, "_file"); ok {
			n = n.without(base)
		} else {
			n = n.without(step + "_file")
		}
	}
	return n.with(step, value.at, overlay(n.field(step), path[1:], value))
}

// overlayItem replaces or appends one item of a list; nil when n is no list, or too short.
func overlayItem(n *node, i int, rest []string, value *node) *node {
	var items []*node
	switch {
	case n == nil || n.kind == null:
	case n.kind == list:
		items = append(items, n.items...)
	default:
		return nil
	}
	if i > len(items) {
		return nil
	}
	if i == len(items) {
		items = append(items, nil)
	}
	items[i] = overlay(items[i], rest, value)
	return &node{kind: list, at: value.at, items: items}
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
	return out
}
