package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// toYAML writes JSON as YAML in block style, in the same order. It is done here because the YAML library's encoder leaves
// text unquoted that its own parser then refuses; what is not plain words is written as JSON, which YAML includes.
func toYAML(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	y := &yamlWriter{in: decoder}
	if err := y.value(0, false); err != nil {
		return nil, err
	}
	return y.out.Bytes(), nil
}

type yamlWriter struct {
	in  *json.Decoder
	out bytes.Buffer
}

// value writes the next value. At the start of a list's item the first key stands on the line of the dash.
func (y *yamlWriter) value(depth int, item bool) error {
	token, err := y.in.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return y.object(depth, item)
	case json.Delim('['):
		return y.list(depth)
	}
	y.space()
	scalar, err := yamlScalar(token)
	y.out.WriteString(scalar + "\n")
	return err
}

func (y *yamlWriter) object(depth int, item bool) error {
	if !y.in.More() {
		y.space()
		y.out.WriteString("{}\n")
		return y.end()
	}
	for first := true; y.in.More(); first = false {
		key, err := y.in.Token()
		if err != nil {
			return err
		}
		name, err := yamlScalar(key)
		if err != nil {
			return err
		}
		switch {
		case first && item:
			y.space()
		default:
			y.begin(depth)
		}
		y.out.WriteString(name + ":")
		if err := y.value(depth+1, false); err != nil {
			return err
		}
	}
	return y.end()
}

func (y *yamlWriter) list(depth int) error {
	if !y.in.More() {
		y.space()
		y.out.WriteString("[]\n")
		return y.end()
	}
	for y.in.More() {
		y.begin(depth)
		y.out.WriteString("-")
		if err := y.value(depth+1, true); err != nil {
			return err
		}
	}
	return y.end()
}

// begin starts a line.
func (y *yamlWriter) begin(depth int) {
	if n := y.out.Len(); n > 0 && y.out.Bytes()[n-1] != '\n' {
		y.out.WriteByte('\n')
	}
	y.out.WriteString(strings.Repeat("  ", depth))
}

// space separates a value from the colon or dash before it.
func (y *yamlWriter) space() {
	if y.out.Len() > 0 {
		y.out.WriteByte(' ')
	}
}

func (y *yamlWriter) end() error {
	_, err := y.in.Token()
	return err
}

var (
	plainText = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./ =@+-]*[A-Za-z0-9_/]$|^[A-Za-z_]$`)
	// Some YAML readers take these for something other than text.
	otherType = regexp.MustCompile(`^(?i:null|true|false|yes|no|on|off|y|n)$`)
)

func yamlScalar(token json.Token) (string, error) {
	if text, ok := token.(string); ok && plainText.MatchString(text) && !otherType.MatchString(text) {
		return text, nil
	}
	if number, ok := token.(json.Number); ok {
		return number.String(), nil
	}
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(token); err != nil {
		return "", fmt.Errorf("write as YAML: %w", err)
	}
	return strings.TrimSuffix(quoted.String(), "\n"), nil
}
