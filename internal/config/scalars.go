package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxEcho bounds how much of a wrong value a message repeats.
const maxEcho = 40

// scalar decodes one value. Zero leaves the default standing, except where zero is a value of its own.
func (d *decoder) scalar(n *node, into reflect.Value, f field, path string) {
	if n.kind != scalar {
		d.problems.add(path, n.at, "must be %s, not %s", typeText(f.typ), n.kind)
		return
	}
	text, ok := d.text(n, path)
	if !ok {
		return
	}
	d.hidden[path] = n.referring()
	value, err := parseScalar(text, scalarType(f.typ))
	if err == nil && !f.keepZero && value.IsZero() {
		return
	}
	if err == nil {
		err = inRange(value, f)
	}
	if err != nil {
		d.problems.add(path, n.at, "%s%s", d.quoted(n, f, text), err)
		return
	}
	into.Set(value)
	d.noteSecret(value, n, path)
}

// text returns a value with its references replaced.
func (d *decoder) text(n *node, path string) (string, bool) {
	if n.literal {
		return n.text, true
	}
	text, err := expand(n.text, d.lookup)
	if err != nil {
		d.problems.add(path, n.at, "%s", err)
		return "", false
	}
	return text, true
}

// noteSecret remembers a secret that is written out, rather than being a reference.
func (d *decoder) noteSecret(value reflect.Value, n *node, path string) {
	if n.literal || n.referring() {
		return
	}
	switch v := value.Interface().(type) {
	case Secret:
		d.exposed = append(d.exposed, secretUse{path: path, at: n.at})
	case SecretURL:
		if v.HasSecret() {
			d.exposed = append(d.exposed, secretUse{path: path, at: n.at})
		}
	}
}

// quoted begins a message with the wrong value, where it may be shown.
func (d *decoder) quoted(n *node, f field, text string) string {
	if text = d.echo(n, f, text); text == "" {
		return ""
	}
	return strconv.Quote(text) + " "
}

// echo returns the value, or "" for one that could be a secret: of a secret's type, or read from the environment.
func (d *decoder) echo(n *node, f field, text string) string {
	t := scalarType(f.typ)
	if t == secretType || t == secretURLType || n.referring() {
		return ""
	}
	if len(text) > maxEcho {
		return text[:maxEcho] + "..."
	}
	return text
}

// scalarType is the type of a setting's values: the items' for a list.
func scalarType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice {
		return t.Elem()
	}
	return t
}

func typeText(t reflect.Type) string {
	t = scalarType(t)
	switch t {
	case durationType:
		return "a duration such as 5s"
	case sizeType:
		return "a size such as 64MiB"
	case secretURLType:
		return "a url or a list of them"
	case secretType:
		return "text"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "text"
	default:
		return "a whole number"
	}
}

func parseScalar(text string, t reflect.Type) (reflect.Value, error) {
	switch t {
	case secretType:
		return reflect.ValueOf(NewSecret(text)), nil
	case secretURLType:
		return reflect.ValueOf(NewSecretURL(text)), nil
	case durationType:
		return parseAs(text, parseDuration)
	case sizeType:
		return parseAs(text, ParseSize)
	}
	switch t.Kind() {
	case reflect.String:
		return reflect.ValueOf(text), nil
	case reflect.Bool:
		return parseAs(text, parseBool)
	case reflect.Float64:
		return parseAs(text, parseFloat)
	default:
		return parseWhole(text, t)
	}
}

// parseAs reads text; empty text is zero whatever the type.
func parseAs[T any](text string, parse func(string) (T, error)) (reflect.Value, error) {
	var value T
	if text == "" {
		return reflect.ValueOf(value), nil
	}
	value, err := parse(text)
	return reflect.ValueOf(value), err
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("must be true or false")
}

func parseFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, errors.New("must be a number")
	}
	return f, nil
}

func parseWhole(text string, t reflect.Type) (reflect.Value, error) {
	value := reflect.New(t).Elem()
	if text == "" {
		return value, nil
	}
	text = strings.ReplaceAll(text, "_", "")
	if value.CanUint() {
		n, err := strconv.ParseUint(text, 10, t.Bits())
		if err != nil {
			return value, fmt.Errorf("must be a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
		}
		value.SetUint(n)
		return value, nil
	}
	n, err := strconv.ParseInt(text, 10, t.Bits())
	if err != nil {
		return value, errors.New("must be a whole number")
	}
	value.SetInt(n)
	return value, nil
}

// inRange holds a value against the tag's bounds and list of values.
func inRange(value reflect.Value, f field) error {
	if f.oneOf != nil && !slices.Contains(f.oneOf, value.String()) {
		return oneOfError(value.String(), f.oneOf)
	}
	if f.min != "" {
		if low, err := parseScalar(f.min, value.Type()); err == nil && number(value) < number(low) {
			return fmt.Errorf("must be at least %s", f.min)
		}
	}
	if f.max != "" {
		if high, err := parseScalar(f.max, value.Type()); err == nil && number(value) > number(high) {
			return fmt.Errorf("must be at most %s", f.max)
		}
	}
	return nil
}

func oneOfError(text string, values []string) error {
	named := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	hint := ""
	if near := nearest(text, named); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return fmt.Errorf("must be one of %s%s", strings.Join(named, ", "), hint)
}

func number(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	return 0
}

// valueText is the text that would be written for a value.
func valueText(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Duration:
		return durationText(value)
	case fmt.Stringer:
		return value.String()
	}
	return fmt.Sprint(v.Interface())
}
