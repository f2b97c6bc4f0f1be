package config

import (
	"fmt"
	"reflect"
	"strings"

	"example.com/outbox-relay/internal/nearest"
)

// unknown reports a key that is no setting, with the one that was probably meant.
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

// suggest finds what an unknown key was meant to be: a sibling spelled alike, a setting whose whole path is spelled
// alike (kafka_brokers), or one of that name elsewhere. "" when there is none.
func suggest(prefix, key string, siblings []field) string {
	names := make([]string, 0, len(siblings)+1)
	for _, f := range siblings {
		names = append(names, f.name)
	}
	if prefix == "" {
		names = append(names, sourceKey)
	}
	if name := nearest.Word(key, names); name != "" {
		return prefix + name
	}
	var paths, sameName []string
	walk(reflect.TypeFor[Config](), "", func(path string) {
		path = strings.Replace(path, sourcesKey+"[]", sourceKey, 1)
		paths = append(paths, path)
		if strings.HasSuffix(path, "."+key) {
			sameName = append(sameName, path)
		}
	})
	if len(sameName) > 0 {
		return sameName[0]
	}
	return nearest.Word(strings.ReplaceAll(prefix+key, "_", "."), paths)
}
