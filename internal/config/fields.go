package config

import (
	"reflect"
	"strings"
	"time"
)

// field is one setting as its struct tag describes it: the one source for decoding, checking, printing, the schema and
// the documentation.
type field struct {
	name     string
	doc      string
	oneOf    []string
	min, max string
	keepZero bool   // zero is a value, not "the default"
	inherit  string // an optional mapping that begins as a copy of this sibling
	index    []int
	typ      reflect.Type
}

// fieldsOf lists a struct's settings in order; those of an inlined struct stand among them.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				out = append(out, inner)
			}
			continue
		}
		d := field{
			name: f.Tag.Get("yaml"), doc: f.Tag.Get("doc"), min: f.Tag.Get("min"), max: f.Tag.Get("max"),
			keepZero: f.Tag.Get("zero") == "value", inherit: f.Tag.Get("inherit"), index: []int{i}, typ: f.Type,
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

var (
	durationType  = reflect.TypeFor[time.Duration]()
	sizeType      = reflect.TypeFor[Size]()
	secretType    = reflect.TypeFor[Secret]()
	secretURLType = reflect.TypeFor[SecretURL]()
)

// section returns the struct behind a setting that is a mapping (or a list of them), nil for all others.
func section(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == secretType || t == secretURLType {
		return nil
	}
	return t
}

// walk visits every setting below t with its path; the items of a list stand as name[].
func walk(t reflect.Type, prefix string, visit func(path string, f field)) {
	for _, f := range fieldsOf(t) {
		path := prefix + f.name
		visit(path, f)
		inner := section(f.typ)
		if inner == nil {
			continue
		}
		if f.typ.Kind() == reflect.Slice {
			path += "[]"
		}
		walk(inner, path+".", visit)
	}
}
