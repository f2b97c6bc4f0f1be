package config

import (
	"fmt"
	"reflect"
	"strings"
)

const docsHead = "# Configuration\n\n" +
	"This page is generated from the code: `go test ./internal/config -update`.\n\n" +
	`One YAML file, looked for as ` + "`outbox-relay.yaml`" + ` in the working directory and then in ` + "`/etc/outbox-relay/`" + `,
or named by ` + "`--config`" + `. What is said more than once is taken from the strongest:

1. ` + "`--set key.path=value`" + `, repeatable; ` + "`--set sources.1.name=b`" + ` reaches into a list, ` + "`[a, b]` and `{key: value}`" + ` set a whole list or section
2. the environment: ` + "`OUTBOX_RELAY_SOURCE__PRIMARY__ADDRESS`" + `, two underscores step down; lists are split at commas
3. the file
4. the default

` + "`${NAME}`" + ` in a value of the file or of ` + "`--set`" + ` reads the environment; a variable that does not exist is an error, and ` + "`$${`" + ` stands
for the characters themselves. Every secret also has a ` + "`_file`" + ` form, which is what Docker and Kubernetes secrets need. Durations are
written ` + "`500ms`, `5s`, `10m`, `168h`" + `, sizes ` + "`64MiB`" + `. Unknown keys are errors. Zero, nothing and an empty list mean the default,
never "off"; where something can be switched off, its description says how.

` + "`outbox-relay config check`" + ` tells everything that is wrong at once, with its line and column; ` + "`config print`" + ` shows what is in
effect, with secrets as ` + "`***`; `config schema`" + ` writes a JSON schema for editors.

## The smallest useful file

` + "```yaml" + `
source:
  primary: {address: "127.0.0.1:3306", user: relay, password: secret}
  tables: [app.local_message]
kafka:
  brokers: ["127.0.0.1:9092"]
redis:
  url: redis://127.0.0.1:6379/0
` + "```" + `

## Every setting

`

// Docs returns docs/CONFIG.md.
func Docs() (string, error) {
	var out strings.Builder
	out.WriteString(docsHead)
	defaults := Defaults()
	section := reflect.ValueOf(defaults.Sources[0])
	fmt.Fprintf(&out, "### source, or a list of sources\n\nThe databases to relay from. `source:` is one, `sources:` a list of the same.\n\n")
	writeTable(&out, section, "source")
	root := reflect.ValueOf(*defaults)
	for _, f := range fieldsOf(root.Type()) {
		if f.name == sourcesKey {
			continue
		}
		fmt.Fprintf(&out, "### %s\n\n%s\n\n", f.name, f.doc)
		writeTable(&out, root.FieldByIndex(f.index), f.name)
	}
	all, err := defaults.Print()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&out, "## Everything, with its default\n\n```yaml\n%s```\n", all)
	return out.String(), nil
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

// rules tells the values or bounds behind a setting's description.
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
