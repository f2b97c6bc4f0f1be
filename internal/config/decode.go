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
	root     *node
	environ  map[string]string // for ${NAME}
	problems *problemList
	exposed  []secretUse
}

// secretUse is a secret that stands in clear where it was written.
type secretUse struct {
	path string
	at   place
}

// config decodes the root, where source: is another way to write sources: with one item.
func (d *decoder) config(into *Config) {
	single := d.root.field(sourceKey)
	switch {
	case single == nil || single.kind == null:
	case d.many():
		d.problems.add(sourceKey, single.at, "source and sources are both set; move it into the list")
	default:
		d.structure(single, reflect.ValueOf(&into.Sources[0]).Elem(), sourceKey)
	}
	if d.root != nil {
		d.structure(d.root.without(sourceKey), reflect.ValueOf(into).Elem(), "")
	}
}

// many reports whether there is a list of sources, so that their paths are sources[i].
func (d *decoder) many() bool {
	sources := d.root.field(sourcesKey)
	return sources != nil && len(sources.items) > 0
}

// structure decodes a mapping into a struct, field by field in the order of the struct.
func (d *decoder) structure(n *node, into reflect.Value, path string) {
	if n == nil || n.kind == null {
		return
	}
	if n.kind != mapping {
		d.wrongKind(n, "{", path, "must be a mapping of settings, not %s", n.kind)
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
		if value := n.field(f.name); value != nil {
			d.field(value, into, f, prefix+f.name)
		}
	}
	d.secretFiles(n, into, fields, prefix)
}

// wrongKind reports a value that is no mapping, or no list, where one belongs; bracket is how that begins.
func (d *decoder) wrongKind(n *node, bracket, path, format string, args ...any) {
	if n.unread(bracket) {
		format, args = "begins with a bracket but is no YAML; write [a, b] or {key: value}", nil
	}
	d.problems.add(path, n.at, format, args...)
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
	items := d.items(n, f, path)
	if len(items) == 0 {
		return
	}
	out := reflect.MakeSlice(f.typ, 0, len(items))
	for i, item := range items {
		itemPath := fmt.Sprintf("%s[%d]", path, i)
		if item == n && f.typ.Elem() == secretURLType {
			itemPath = path // a url may stand alone
		}
		if !item.given() {
			d.problems.add(itemPath, item.at, "an item without a value; remove it")
			continue
		}
		out = reflect.Append(out, d.item(item, f, itemPath))
	}
	into.Set(out)
}

// item returns a value of a list, where zero is never a default.
func (d *decoder) item(n *node, f field, path string) reflect.Value {
	value := reflect.New(f.typ.Elem()).Elem()
	if f.name == sourcesKey {
		value.Set(reflect.ValueOf(defaultSource()))
	}
	if section(f.typ) != nil {
		d.structure(n, value, path)
		return value
	}
	f.keepZero = true
	d.scalar(n, value, f, path)
	return value
}

// items returns the nodes of a list. A url may stand alone; text from the environment, a flag or a reference is split at
// commas.
func (d *decoder) items(n *node, f field, path string) []*node {
	switch {
	case n.kind == list:
		return n.items
	case n.unread("[") || section(f.typ) != nil:
		d.wrongKind(n, "[", path, "must be a list, not %s", n.kind)
	case n.flat || n.kind == scalar && strings.HasPrefix(n.text, "${"):
		return d.split(n, path)
	case n.kind != scalar:
		d.wrongKind(n, "[", path, "must be a list, not %s", n.kind)
	case n.text == "":
	case f.typ.Elem() == secretURLType && strings.Contains(n.text, "://"):
		return []*node{n}
	default:
		d.wrongKind(n, "[", path, "must be a list; write [%s]", d.echo(n, f, n.text))
	}
	return nil
}

// split returns the parts of a text; the commas of a redis+sentinel:// url are its own.
func (d *decoder) split(n *node, path string) []*node {
	text, ok := d.text(n, path)
	if !ok {
		return nil
	}
	if strings.Contains(text, "://") {
		return []*node{n}
	}
	var out []*node
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, &node{kind: scalar, text: part, at: n.at, literal: true, hide: n.referring()})
		}
	}
	return out
}
