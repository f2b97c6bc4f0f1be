// Package yamltext writes YAML in block style, in the order of what it is given. The YAML library's own encoder leaves text
// unquoted that its own parser then refuses; here text that is not surely read back as the same is written as JSON, which
// YAML includes.
package yamltext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// Style says which text stands without quotes.
type Style struct{ plain, otherType *regexp.Regexp }

// Results is the style of results: words and sentences stand without quotes.
func Results() Style { return results }

// Settings is the style of a configuration: sizes, addresses and URLs stand without quotes too.
func Settings() Style { return settings }

// What some YAML readers take for something other than text is otherType.
var (
	results = Style{
		plain:     regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./ =@+-]*[A-Za-z0-9_/]$|^[A-Za-z_]$`),
		otherType: regexp.MustCompile(`^(?i:null|true|false|yes|no|on|off|y|n)$`),
	}
	settings = Style{
		plain:     regexp.MustCompile(`^[A-Za-z0-9_./~][A-Za-z0-9_./~+=@*-]*(:[A-Za-z0-9_./~+=@*-]+)*$`),
		otherType: regexp.MustCompile(`^(?i:[-+.0-9][-+.0-9_:eExXoa-fA-F]*|~|\.(inf|nan)|null|true|false|yes|no|on|off|y|n)$`),
	}
)

// FromJSON writes a JSON text as YAML.
func FromJSON(text []byte, style Style) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	tree, err := read(decoder)
	if err != nil {
		return nil, fmt.Errorf("read as JSON: %w", err)
	}
	return Write(tree, style)
}

// read reads the next value, in its order.
func read(in *json.Decoder) (any, error) {
	token, err := in.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		tree := yaml.MapSlice{}
		for in.More() {
			key, err := in.Token()
			if err != nil {
				return nil, err
			}
			value, err := read(in)
			if err != nil {
				return nil, err
			}
			tree = append(tree, yaml.MapItem{Key: key, Value: value})
		}
		_, err = in.Token()
		return tree, err
	case json.Delim('['):
		items := []any{}
		for in.More() {
			value, err := read(in)
			if err != nil {
				return nil, err
			}
			items = append(items, value)
		}
		_, err = in.Token()
		return items, err
	}
	return token, nil
}

// Write writes a tree of maps in order, lists, text, numbers and booleans.
func Write(tree any, style Style) ([]byte, error) {
	w := writer{style: style}
	if err := w.value(tree, 0, false); err != nil {
		return nil, fmt.Errorf("write as YAML: %w", err)
	}
	return w.out.Bytes(), nil
}

type writer struct {
	style Style
	out   bytes.Buffer
}

// value writes what stands behind a colon or a dash. The first key of a list's item stands on the line of the dash.
func (w *writer) value(value any, depth int, item bool) error {
	switch v := value.(type) {
	case yaml.MapSlice:
		if len(v) > 0 {
			return w.object(v, depth, item)
		}
		value = struct{}{}
	case []any:
		if len(v) > 0 {
			return w.list(v, depth)
		}
	}
	text, err := w.scalar(value)
	w.space()
	w.out.WriteString(text + "\n")
	return err
}

func (w *writer) object(tree yaml.MapSlice, depth int, item bool) error {
	for i, entry := range tree {
		if i == 0 && item {
			w.space()
		} else {
			w.begin(depth)
		}
		name, err := w.scalar(entry.Key)
		if err != nil {
			return err
		}
		w.out.WriteString(name + ":")
		if err := w.value(entry.Value, depth+1, false); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) list(items []any, depth int) error {
	for _, item := range items {
		w.begin(depth)
		w.out.WriteString("-")
		if err := w.value(item, depth+1, true); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a line.
func (w *writer) begin(depth int) {
	if n := w.out.Len(); n > 0 && w.out.Bytes()[n-1] != '\n' {
		w.out.WriteByte('\n')
	}
	w.out.WriteString(strings.Repeat("  ", depth))
}

// space separates a value from the colon or dash before it.
func (w *writer) space() {
	if w.out.Len() > 0 {
		w.out.WriteByte(' ')
	}
}

// scalar writes numbers and booleans as they are, and quotes text unless it is surely read back as the same.
func (w *writer) scalar(value any) (string, error) {
	if text, ok := value.(string); ok && w.style.plain.MatchString(text) && !w.style.otherType.MatchString(text) {
		return text, nil
	}
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(quoted.String(), "\n"), err
}
