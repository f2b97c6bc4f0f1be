package config

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"
)

const schemaID = "https://json-schema.org/draft/2020-12/schema"

// Schema returns the JSON schema of the file, with every setting's meaning, default, values and bounds, for editors.
func Schema() ([]byte, error) {
	defaults := Defaults()
	root := sectionSchema(reflect.ValueOf(*defaults))
	one := sectionSchema(reflect.ValueOf(defaults.Sources[0]))
	one.Description = "The database to relay from. Several stand under sources."
	root.Properties.Set(sourceKey, one)
	root.Version = schemaID
	root.Title = "outbox-relay.yaml"
	root.Not = &jsonschema.Schema{Required: []string{sourceKey, sourcesKey}}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(out, '\n'), nil
}

func sectionSchema(defaults reflect.Value) *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	for _, f := range fieldsOf(defaults.Type()) {
		s := settingSchema(f, defaults.FieldByIndex(f.index))
		s.Description = f.doc
		out.Properties.Set(f.name, s)
	}
	return out
}

func settingSchema(f field, value reflect.Value) *jsonschema.Schema {
	switch {
	case f.typ.Kind() == reflect.Pointer:
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "null"}, sectionSchema(reflect.Zero(f.typ.Elem()))}}
	case f.typ == groupsType:
		names := &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}}
		return &jsonschema.Schema{Type: "object", AdditionalProperties: names}
	case f.typ.Kind() == reflect.Slice && section(f.typ) != nil:
		item := reflect.Zero(f.typ.Elem())
		if value.Len() > 0 {
			item = value.Index(0)
		}
		return &jsonschema.Schema{Type: "array", Items: sectionSchema(item)}
	case f.typ.Kind() == reflect.Slice:
		return listSchema(f, value)
	case section(f.typ) != nil:
		return sectionSchema(value)
	}
	s := scalarSchema(f)
	if text := valueText(value); text != "" && f.typ != secretType {
		s.Default = valueTree(value)
	}
	return s
}

// listSchema also allows the forms beside a list: a lone url, and a reference that holds a list.
func listSchema(f field, value reflect.Value) *jsonschema.Schema {
	array := &jsonschema.Schema{Type: "array", Items: scalarSchema(f)}
	alone := referenceSchema()
	if f.typ.Elem() == secretURLType {
		alone = &jsonschema.Schema{Type: "string"}
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{array, alone}, Default: valueTree(value)}
}

// scalarSchema describes one value; what is not text may be a reference as well.
func scalarSchema(f field) *jsonschema.Schema {
	t := elementType(f.typ)
	var s *jsonschema.Schema
	switch {
	case t == durationType:
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: `^([0-9.]+(ns|us|ms|s|m|h))+$`, Examples: []any{"500ms", "5s", "10m"}},
			{Const: 0},
			referenceSchema(),
		}}
	case t == sizeType:
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: `^[0-9.]+ ?([kKmMgG]i?)?[bB]?$`, Examples: []any{"64MiB"}}, {Type: "integer"}, referenceSchema(),
		}}
	case t.Kind() == reflect.Bool:
		s = &jsonschema.Schema{Type: "boolean"}
	case t.Kind() == reflect.Float64:
		s = &jsonschema.Schema{Type: "number", Minimum: json.Number(f.min), Maximum: json.Number(f.max)}
	case t.Kind() == reflect.String && f.oneOf != nil:
		s = &jsonschema.Schema{Type: "string"}
		for _, v := range f.oneOf {
			s.Enum = append(s.Enum, v)
		}
	case t.Kind() == reflect.String || t == secretType || t == secretURLType:
		// A person may write a name or a password that YAML takes for a number.
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}}}
	default:
		s = &jsonschema.Schema{Type: "integer", Minimum: minimum(f), Maximum: json.Number(f.max)}
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, referenceSchema()}}
}

// minimum is 0 where that means the default.
func minimum(f field) json.Number {
	if !f.keepZero {
		return "0"
	}
	return json.Number(f.min)
}

func referenceSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `\$\{[A-Za-z_][A-Za-z0-9_]*\}`}
}
