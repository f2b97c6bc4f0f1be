// Package render writes what a command found: as a table for people, as JSON or YAML for programs.
//
// A result is one value with JSON tags that also knows how to show itself as text. The package guarantees that the three
// forms hold the same facts in the same order, and that nothing in a text can drive the terminal: names, errors and
// contents come from outside.
package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"example.com/outbox-relay/internal/yamltext"
)

// Format is how a result is written.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// Formats lists the formats, for help and completion.
func Formats() []string { return []string{string(Table), string(JSON), string(YAML)} }

// Parse reads a format's name.
func Parse(name string) (Format, error) {
	for _, f := range Formats() {
		if name == f {
			return Format(f), nil
		}
	}
	return "", fmt.Errorf("unknown output format %q: use -o %s", name, strings.Join(Formats(), "|"))
}

// View is a result that can show itself.
type View interface {
	// Text writes the result for a person.
	Text(p *Page)
}

// Write writes a view in a format.
func Write(out io.Writer, format Format, view View) error {
	var text []byte
	var err error
	switch format {
	case JSON:
		text, err = encode(view)
	case YAML:
		if text, err = encode(view); err == nil {
			text, err = yamltext.FromJSON(text, yamltext.Results())
		}
	case Table:
		var p Page
		view.Text(&p)
		text = p.bytes()
	default:
		return fmt.Errorf("unknown output format %q", format)
	}
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

func encode(view View) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(view)
	return out.Bytes(), err
}
