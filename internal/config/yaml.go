package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

var (
	plainText = regexp.MustCompile(`^[A-Za-z0-9_./~][A-Za-z0-9_./~+=@*-]*(:[A-Za-z0-9_./~+=@*-]+)*$`)
	// These would not be text any more, to one or another YAML reader.
	otherType = regexp.MustCompile(`^([-+.0-9][-+.0-9_:eExXoa-fA-F]*|~|\.(inf|nan)|null|true|false|yes|no|on|off|y|n)$`)
)

// emit writes a tree as YAML. It is done here because the library's encoder leaves text unquoted that its own parser
// then refuses.
func emit(out *strings.Builder, tree yaml.MapSlice, indent string) error {
	for _, item := range tree {
		key, err := scalarText(item.Key)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s%s:", indent, key)
		if err := emitValue(out, item.Value, indent); err != nil {
			return err
		}
	}
	return nil
}

// emitValue writes what stands behind a colon.
func emitValue(out *strings.Builder, value any, indent string) error {
	switch v := value.(type) {
	case yaml.MapSlice:
		if len(v) == 0 {
			out.WriteString(" {}\n")
			return nil
		}
		out.WriteString("\n")
		return emit(out, v, indent+"  ")
	case []any:
		if len(v) == 0 {
			out.WriteString(" []\n")
			return nil
		}
		out.WriteString("\n")
		return emitItems(out, v, indent+"  ")
	}
	text, err := scalarText(value)
	fmt.Fprintf(out, " %s\n", text)
	return err
}

func emitItems(out *strings.Builder, items []any, indent string) error {
	for _, item := range items {
		section, ok := item.(yaml.MapSlice)
		if !ok {
			text, err := scalarText(item)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s- %s\n", indent, text)
			continue
		}
		var inner strings.Builder
		if err := emit(&inner, section, indent+"  "); err != nil {
			return err
		}
		out.WriteString(indent + "- " + strings.TrimPrefix(inner.String(), indent+"  "))
	}
	return nil
}

// scalarText writes numbers and booleans as they are, and quotes text unless it is surely read back as the same.
func scalarText(value any) (string, error) {
	text, ok := value.(string)
	if ok && plainText.MatchString(text) && !otherType.MatchString(strings.ToLower(text)) {
		return text, nil
	}
	// A JSON value is a YAML value.
	var quoted strings.Builder
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(quoted.String(), "\n"), err
}
