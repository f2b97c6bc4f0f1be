package config

import (
	"fmt"
	"reflect"
	"strings"
)

const (
	sourceKey  = "source"
	sourcesKey = "sources"
)

// decoder fills the configuration from a node tree, over what it already holds.
type decoder struct {
	problems *problemList
	lookup   func(string) (string, bool)
	where    map[string]place // of every key that was written, for what is found wrong later
	hidden   map[string]bool  // of those whose value came from a reference
	exposed  []secretUse
	many     bool // there is a list of sources, so that their paths are sources[i]
}

// secretUse is a secret that stands in clear where it was written.
type secretUse struct {
	path string
	at   place
}

// config decodes the root, where source: is another way to write sources: with one item.
func (d *decoder) config(root *node, into *Config) {
	single, many := root.field(sourceKey), root.field(sourcesKey)
	d.many = many != nil && many.kind == list && len(many.items) > 0
	switch {
	case single == nil || single.kind == null:
	case d.many:
		d.problems.add(sourceKey, single.at, "source and sources are both set; move it into the list")
	default:
		d.where[sourceKey] = single.at
		d.structure(single, reflect.ValueOf(&into.Sources[0]).Elem(), sourceKey)
	}
	if root == nil {
		return
	}
	d.structure(root.without(sourceKey), reflect.ValueOf(into).Elem(), "")
}

// structure decodes a mapping into a struct, field by field in the order of the struct.
func (d *decoder) structure(n *node, into reflect.Value, path string) {
	if n == nil || n.kind == null {
		return
	}
	if n.kind != mapping {
		d.problems.add(path, n.at, "must be a mapping of settings, not %s", n.kind)
		return
	}
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	fields := fieldsOf(into.Type())
	for _, e := range n.fields {
		if _, ok := fieldNamed(fields, e.key); !ok {
			d.unknown(prefix, e, fields)
		}
	}
	for _, f := range fields {
		value := n.field(f.name)
		if value == nil {
			continue
		}
		d.where[prefix+f.name] = value.at
		d.field(value, into, f, prefix+f.name)
	}
	d.secretFiles(n, into, fields, prefix)
}

func (d *decoder) unknown(prefix string, e entry, siblings []field) {
	hint := suggest(prefix, e.key, siblings)
	switch {
	case hint == "":
		hint = "remove it, or see outbox-relay config schema for the keys there are"
	case strings.HasPrefix(e.at.origin, environmentOrigin):
		hint = "did you mean " + variable(hint) + "?"
	default:
		hint = fmt.Sprintf("did you mean %s?", hint)
	}
	d.problems.add(prefix+e.key, e.at, "unknown key; %s", hint)
}

func (d *decoder) field(n *node, parent reflect.Value, f field, path string) {
	into := parent.FieldByIndex(f.index)
	switch {
	case n.kind == null:
	case f.typ == groupsType:
		d.groups(n, into, path)
	case f.typ.Kind() == reflect.Pointer:
		d.optional(n, parent, f, path)
	case f.typ.Kind() == reflect.Slice:
		d.list(n, into, f, path)
	case section(f.typ) != nil:
		d.structure(n, into, path)
	default:
		d.scalar(n, into, f, path)
	}
}

// optional decodes a mapping that need not be there, beginning as a copy of the sibling it inherits from.
func (d *decoder) optional(n *node, parent reflect.Value, f field, path string) {
	value := reflect.New(f.typ.Elem())
	if from, ok := fieldNamed(fieldsOf(parent.Type()), f.inherit); ok {
		value.Elem().Set(parent.FieldByIndex(from.index))
	}
	d.structure(n, value.Elem(), path)
	parent.FieldByIndex(f.index).Set(value)
}

// list replaces the default. An empty one is zero, and so the default again.
func (d *decoder) list(n *node, into reflect.Value, f field, path string) {
	items, ok := d.items(n, f, path)
	if !ok || len(items) == 0 {
		return
	}
	out := reflect.MakeSlice(f.typ, 0, len(items))
	for i, item := range items {
		itemPath := fmt.Sprintf("%s[%d]", path, i)
		d.where[itemPath] = item.at
		value := reflect.New(f.typ.Elem()).Elem()
		if item.kind == null {
			d.problems.add(itemPath, item.at, "an item without a value; remove it")
			continue
		}
		if f.typ.Elem() == reflect.TypeFor[Source]() {
			value.Set(reflect.ValueOf(defaultSource()))
		}
		if section(f.typ) != nil {
			d.structure(item, value, itemPath)
		} else {
			d.item(item, value, f, itemPath)
		}
		out = reflect.Append(out, value)
	}
	into.Set(out)
}

// item decodes a value of a list, where zero is never a default.
func (d *decoder) item(n *node, into reflect.Value, f field, path string) {
	f.keepZero = true
	if n.kind == scalar && n.text == "" {
		d.problems.add(path, n.at, "an item without a value; remove it")
		return
	}
	d.scalar(n, into, f, path)
}

// items returns the nodes of a list. A url may stand alone; text from the environment, a flag or a reference is split at
// commas.
func (d *decoder) items(n *node, f field, path string) ([]*node, bool) {
	switch {
	case n.kind == list:
		return n.items, true
	case n.kind != scalar || section(f.typ) != nil:
		d.problems.add(path, n.at, "must be a list, not %s", n.kind)
	case n.text == "":
		return nil, true
	case f.typ.Elem() == secretURLType && strings.Contains(n.text, "://"):
		// The commas of a redis+sentinel:// url are its own.
		return []*node{n}, true
	case n.flat || strings.HasPrefix(n.text, "${"):
		return d.split(n, path)
	default:
		d.problems.add(path, n.at, "must be a list; write [%s]", d.echo(n, f, n.text))
	}
	return nil, false
}

func (d *decoder) split(n *node, path string) ([]*node, bool) {
	text, ok := d.text(n, path)
	if !ok {
		return nil, false
	}
	if strings.Contains(text, "://") {
		return []*node{n}, true
	}
	var out []*node
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, &node{kind: scalar, text: part, at: n.at, literal: true, hide: n.referring()})
		}
	}
	return out, true
}
