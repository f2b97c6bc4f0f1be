package config

import (
	"encoding"
	"reflect"
	"strings"
)

// field is one setting as its struct tag describes it: the one source for decoding, checking, printing, the schema and
// the documentation.
type field struct {
	name     string
	doc      string
	oneOf    []string
	min, max string
	form     string // one of forms, "" for any text
	keepZero bool   // zero is a value, not "the default"
	inherit  string // an optional mapping that begins as a copy of this sibling
	index    []int
	typ      reflect.Type
}

// fieldsOf lists a struct's settings in order; those of an inlined struct stand among them.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		name := f.Tag.Get("yaml")
		if f.Anonymous {
			continue
		}
		d := field{
			name: name, doc: f.Tag.Get("doc"), min: f.Tag.Get("min"), max: f.Tag.Get("max"), form: f.Tag.Get("form"),
			keepZero: f.Tag.Get("zero") == "value", inherit: f.Tag.Get("inherit"), index: f.Index, typ: f.Type,
		}
		if values, ok := f.Tag.Lookup("oneof"); ok {
			d.oneOf = strings.Split(values, "|")
		}
		out = append(out, d)
	}
	return out
}

func fieldNamed(fields []field, name string) (field, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

// section returns the struct behind a setting that is a mapping (or a list of them), nil for all others.
func section(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil
	}
	return t
}

// elementType is the type of a setting's values: the items' for a list.
func elementType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice {
		return t.Elem()
	}
	return t
}

// walk visits every setting below t with its path; the items of a list stand as name[].
func walk(t reflect.Type, prefix string, visit func(path string)) {
	for _, f := range fieldsOf(t) {
		path := prefix + f.name
		visit(path)
		if inner := section(f.typ); inner != nil {
			if f.typ.Kind() == reflect.Slice {
				path += "[]"
			}
			walk(inner, path+".", visit)
		}
	}
}
