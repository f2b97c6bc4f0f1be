package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/outbox-relay/internal/nearest"
)

// maxEcho bounds how much of a wrong value a message repeats.
const maxEcho = 80

var (
	reference = regexp.MustCompile(`\$?\$\{[^}]*\}?`)
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// scalar decodes one value. Zero leaves the default standing, except where zero is a value of its own.
func (d *decoder) scalar(n *node, into reflect.Value, f field, path string) {
	t := into.Type()
	if n.kind != scalar && !n.flat {
		d.problems.add(path, n.at, "must be %s, not %s", scalarTypes[t].text, n.kind)
		return
	}
	text, ok := d.text(n, path)
	if !ok {
		return
	}
	value, err := parseScalar(text, t)
	if err == nil && !f.keepZero && value.IsZero() {
		return
	}
	if err == nil {
		err = f.check(text, value)
	}
	if err != nil {
		shown := d.echo(n, f, text)
		if shown != "" {
			shown = strconv.Quote(shown) + " "
		}
		d.problems.add(path, n.at, "%s%s", shown, err)
		return
	}
	into.Set(value)
	url, isURL := reflect.TypeAssert[SecretURL](value)
	if !n.literal && !n.referring() && (t == secretType || isURL && url.hasSecret()) {
		d.exposed = append(d.exposed, secretUse{path: path, at: n.at})
	}
}

// text returns a value with ${NAME} replaced by the environment's value and $${ by ${. What is inserted is never looked
// at again, neither for references nor as YAML.
func (d *decoder) text(n *node, path string) (text string, ok bool) {
	if n.literal {
		return n.text, true
	}
	problem := ""
	text = reference.ReplaceAllStringFunc(n.text, func(match string) string {
		if strings.HasPrefix(match, "$$") {
			return match[1:]
		}
		name, closed := strings.CutSuffix(match[2:], "}")
		value, known := d.environ[name]
		switch {
		case !closed || !envName.MatchString(name):
			problem = `holds "${" that is no reference; write ${NAME}, or $${ for the characters themselves`
		case !known:
			problem = fmt.Sprintf("the environment has no variable %s; set it, or write $${%s} for the characters themselves", name, name)
		}
		return value
	})
	if problem != "" {
		d.problems.add(path, n.at, "%s", problem)
	}
	return text, problem == ""
}

// echo returns the value, or "" for one that could be a secret: of a secret's type, or read from the environment.
func (d *decoder) echo(n *node, f field, text string) string {
	t := elementType(f.typ)
	if t == secretType || t == secretURLType || n.referring() {
		return ""
	}
	if len(text) > maxEcho {
		return text[:maxEcho] + "..."
	}
	return text
}

// check holds a value against the tag's list of values, form and bounds.
func (f field) check(text string, value reflect.Value) error {
	if f.oneOf != nil && !slices.Contains(f.oneOf, text) {
		named := slices.DeleteFunc(slices.Clone(f.oneOf), func(v string) bool { return v == "" })
		hint := ""
		if near := nearest.Word(text, named); near != "" {
			hint = fmt.Sprintf("; did you mean %s?", near)
		}
		return fmt.Errorf("must be one of %s%s", strings.Join(named, ", "), hint)
	}
	if f.form != "" {
		return forms[f.form](text)
	}
	if low, err := parseScalar(f.min, value.Type()); f.min != "" && err == nil && number(value) < number(low) {
		return fmt.Errorf("must be at least %s", f.min)
	}
	if high, err := parseScalar(f.max, value.Type()); f.max != "" && err == nil && number(value) > number(high) {
		return fmt.Errorf("must be at most %s", f.max)
	}
	return nil
}
