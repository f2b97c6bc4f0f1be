package config

import (
	"fmt"
	"reflect"
	"slices"
)

// maxGroups bounds the groups of a topic, and maxGroupTopics the topics: each pair has metrics and costs queries.
const (
	maxGroups      = 32
	maxGroupTopics = 200
	maxGroupName   = 255
)

// groups decodes a mapping of topics to lists of consumer groups.
func (d *decoder) groups(n *node, into reflect.Value, path string) {
	if n.kind == scalar && n.text == "" {
		return
	}
	if n.kind != mapping {
		d.wrongKind(n, "{", path, "must be a mapping such as {order-events: [points, logistics]}, not %s", n.kind)
		return
	}
	if len(n.fields) > maxGroupTopics {
		d.problems.add(path, n.at, "names %d topics; at most %d are watched", len(n.fields), maxGroupTopics)
	}
	if len(n.fields) == 0 {
		return
	}
	out := Groups{}
	for _, e := range n.fields {
		out[e.key] = d.groupNames(e, path+"."+e.key)
	}
	into.Set(reflect.ValueOf(out))
}

func (d *decoder) groupNames(e entry, path string) []string {
	var names []string
	before := len(d.problems.list)
	if e.value.kind != null {
		d.list(e.value, reflect.ValueOf(&names).Elem(), field{name: e.key, typ: reflect.TypeFor[[]string](), form: "group"}, path)
	}
	if len(d.problems.list) > before {
		return nil // what is wrong in itself is not complained about twice
	}
	switch {
	case len(names) == 0:
		d.problems.add(path, e.at, "names no group; name those that must report, or remove the topic")
	case len(names) > maxGroups:
		d.problems.add(path, e.at, "names %d groups; at most %d are possible", len(names), maxGroups)
	}
	for i, name := range names {
		if !slices.Contains(names[:i], name) {
			continue
		}
		at, shown := e.value, fmt.Sprintf("%q ", name)
		if e.value.kind == list {
			at = e.value.items[i]
		}
		if at.referring() {
			shown = ""
		}
		d.problems.add(fmt.Sprintf("%s[%d]", path, i), at.at, "%sis named twice; remove one", shown)
	}
	return names
}
