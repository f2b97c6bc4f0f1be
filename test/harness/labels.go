package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

var (
	metricRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z]+ \\| (.*?) \\|")
	labelSet  = regexp.MustCompile("`([a-z_]+)` \\(([^)]*)\\)")
)

// documentedLabels returns the values that docs/METRICS.md gives to labels: metric, label, value.
var documentedLabels = sync.OnceValues(func() (map[string]map[string]map[string]bool, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "METRICS.md"))
	if err != nil {
		return nil, err
	}
	documented := map[string]map[string]map[string]bool{}
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		sets := map[string]map[string]bool{}
		for _, label := range labelSet.FindAllStringSubmatch(row[2], -1) {
			sets[label[1]] = map[string]bool{}
			for value := range strings.SplitSeq(label[2], ", ") {
				sets[label[1]][value] = true
			}
		}
		documented[row[1]] = sets
	}
	return documented, nil
})

// documented returns an error when a series has a label value that docs/METRICS.md does not list: alerts and the sweeper's
// reckoning know the listed ones only.
func (m Metrics) documented() error {
	documented, err := documentedLabels()
	if err != nil {
		return err
	}
	for name, family := range m {
		if !strings.HasPrefix(name, "outbox_relay_") {
			continue
		}
		sets, ok := documented[name]
		if !ok {
			return fmt.Errorf("metric %s is not in docs/METRICS.md", name)
		}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if set, ok := sets[label.GetName()]; ok && !set[label.GetValue()] {
					return fmt.Errorf("%s{%s=%q}: docs/METRICS.md does not list this value", name, label.GetName(), label.GetValue())
				}
			}
		}
	}
	return nil
}
