package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"example.com/outbox-relay/internal/yamltext"
)

// Print returns the effective configuration as YAML, with *** for every secret. Load reads it back, but for those.
func (c *Config) Print() (string, error) {
	tree := c.tree()
	escaped(tree)
	text, err := yamltext.Write(tree, yamltext.Settings())
	if err != nil {
		return "", fmt.Errorf("print the configuration: %w", err)
	}
	return string(text), nil
}

// Redacted returns the effective configuration as plain maps, lists and values, with *** for every secret, for JSON.
func (c *Config) Redacted() map[string]any { return plain(c.tree()) }

// tree is the configuration in order; a lone source stands under source.
func (c *Config) tree() yaml.MapSlice {
	tree := sectionTree(reflect.ValueOf(*c))
	if len(c.Sources) == 1 {
		tree[0] = yaml.MapItem{Key: sourceKey, Value: sectionTree(reflect.ValueOf(c.Sources[0]))}
	}
	return tree
}

func sectionTree(v reflect.Value) yaml.MapSlice {
	var out yaml.MapSlice
	fields := fieldsOf(v.Type())
	for _, f := range fields {
		if file, ok := fieldNamed(fields, f.name+"_file"); ok && v.FieldByIndex(file.index).String() != "" {
			continue // its file says the same, and both together are not allowed
		}
		out = append(out, yaml.MapItem{Key: f.name, Value: valueTree(v.FieldByIndex(f.index))})
	}
	return out
}

func valueTree(v reflect.Value) any {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return nil
	case v.Kind() == reflect.Pointer:
		return valueTree(v.Elem())
	case v.Type() == groupsType:
		tree := yaml.MapSlice{}
		groups, _ := reflect.TypeAssert[Groups](v)
		for _, topic := range slices.Sorted(maps.Keys(groups)) {
			tree = append(tree, yaml.MapItem{Key: topic, Value: valueTree(reflect.ValueOf(groups[topic]))})
		}
		return tree
	case v.Kind() == reflect.Slice:
		if v.Type().Elem() == secretURLType && v.Len() == 1 {
			return valueTree(v.Index(0))
		}
		items := make([]any, v.Len())
		for i := range items {
			items[i] = valueTree(v.Index(i))
		}
		return items
	case section(v.Type()) != nil:
		return sectionTree(v)
	case v.Type().Implements(reflect.TypeFor[fmt.Stringer]()):
		return valueText(v)
	}
	return v.Interface()
}

// escaped writes ${ as $${, which is how Load reads it back.
func escaped(value any) any {
	switch v := value.(type) {
	case yaml.MapSlice:
		for i := range v {
			v[i].Value = escaped(v[i].Value)
		}
	case []any:
		for i := range v {
			v[i] = escaped(v[i])
		}
	case string:
		return strings.ReplaceAll(v, "${", "$${")
	}
	return value
}

func plain(tree yaml.MapSlice) map[string]any {
	out := make(map[string]any, len(tree))
	for _, item := range tree {
		out[fmt.Sprint(item.Key)] = plainValue(item.Value)
	}
	return out
}

func plainValue(value any) any {
	switch v := value.(type) {
	case yaml.MapSlice:
		return plain(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainValue(v[i])
		}
		return out
	}
	return value
}
