package config

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/CONFIG.md")

// TestPageIsUpToDate holds docs/CONFIG.md against the settings. What stands above its list of settings is written by
// hand, all below is written here.
func TestPageIsUpToDate(t *testing.T) {
	t.Parallel()
	const page, list = "../../docs/CONFIG.md", "## Every setting\n\n"
	have, err := os.ReadFile(page)
	require.NoError(t, err)
	head, _, ok := strings.Cut(string(have), list)
	require.True(t, ok)
	want := head + list + settings(t)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(have), "run: go test ./internal/config -update")
}

// settings describes every setting, with its default.
func settings(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	defaults := Defaults()
	out.WriteString("### source, or a list of sources\n\nThe databases to relay from. `source:` is one, `sources:` a list of the same.\n\n")
	writeTable(&out, reflect.ValueOf(defaults.Sources[0]), sourceKey)
	root := reflect.ValueOf(*defaults)
	for _, f := range fieldsOf(root.Type()) {
		if f.name != sourcesKey {
			fmt.Fprintf(&out, "### %s\n\n%s\n\n", f.name, f.doc)
			writeTable(&out, root.FieldByIndex(f.index), f.name)
		}
	}
	all, err := defaults.Print()
	require.NoError(t, err)
	fmt.Fprintf(&out, "## Everything, with its default\n\n```yaml\n%s```\n", all)
	return out.String()
}

func writeTable(out *strings.Builder, section reflect.Value, path string) {
	out.WriteString("| key | default | meaning |\n|---|---|---|\n")
	writeRows(out, section, path+".")
	out.WriteString("\n")
}

func writeRows(out *strings.Builder, values reflect.Value, prefix string) {
	for _, f := range fieldsOf(values.Type()) {
		value := values.FieldByIndex(f.index)
		inner := section(f.typ)
		if inner != nil && f.typ.Kind() == reflect.Struct {
			fmt.Fprintf(out, "| `%s%s` | | %s |\n", prefix, f.name, f.doc)
			writeRows(out, value, prefix+f.name+".")
			continue
		}
		fmt.Fprintf(out, "| `%s%s` | %s | %s%s |\n", prefix, f.name, defaultCell(value), escapeCell(f.doc), rules(f))
		if inner != nil && f.inherit == "" {
			writeRows(out, reflect.Zero(inner), prefix+f.name+"[].")
		}
	}
}

func defaultCell(v reflect.Value) string {
	var items []string
	switch {
	case v.Kind() == reflect.Pointer, v.Type() == groupsType:
		return "none"
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			items = append(items, valueText(v.Index(i)))
		}
	default:
		items = append(items, valueText(v))
	}
	text := strings.Join(items, ", ")
	if text == "" {
		return "none"
	}
	return "`" + text + "`"
}

// rules are the values or bounds behind a setting's description.
func rules(f field) string {
	var parts []string
	if f.oneOf != nil {
		var values []string
		for _, v := range f.oneOf {
			if v != "" {
				values = append(values, "`"+v+"`")
			}
		}
		parts = append(parts, "One of "+strings.Join(values, ", ")+".")
	}
	if f.min != "" {
		parts = append(parts, fmt.Sprintf("From %s to %s.", f.min, f.max))
	}
	if len(parts) == 0 {
		return ""
	}
	return " " + strings.Join(parts, " ")
}

// escapeCell keeps a bar in a description from ending the table's cell.
func escapeCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
