package metrics

import (
	"fmt"
	"strings"
)

const tableHead = `# Metrics

Served at ` + "`/metrics`" + ` of the console. This page is generated from the code: ` + "`go test ./internal/metrics -update`" + `.

Every metric has the label ` + "`source`" + `, the configured name of the source, beside those of the table. The first %d topics of a
source get a label of their own, the rest share ` + "`%s`" + `; a row without a topic counts under ` + "`%s`" + `. A gauge whose value
is not known yet is left out of the scrape rather than shown as zero. Histograms have classic buckets and, for a
scraper that asks for protobuf, native ones. The Go runtime's and the process' own metrics (` + "`go_*`, `process_*`" + `) are there too.

| metric | type | labels | meaning |
|---|---|---|---|
`

// Table returns docs/METRICS.md.
func Table() string {
	var b builder
	newSource(&b, "")
	var out strings.Builder
	fmt.Fprintf(&out, tableHead, MaxTopics, OtherTopic, NoTopic)
	for _, d := range b.definitions {
		fmt.Fprintf(&out, "| `%s_%s` | %s | %s | %s |\n", Namespace, d.name, d.kind, labelCell(d.labels), d.help)
	}
	return out.String()
}

func labelCell(labels []label) string {
	cells := make([]string, len(labels))
	for i, l := range labels {
		cells[i] = "`" + l.name + "`"
		if len(l.values) > 0 {
			cells[i] += " (" + strings.Join(l.values, ", ") + ")"
		}
	}
	return strings.Join(cells, ", ")
}
