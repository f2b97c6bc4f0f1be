package compose_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var metricName = regexp.MustCompile(`outbox_relay_[a-z_]+`)

// checkExpression holds a PromQL expression to the metrics that there are.
func checkExpression(t *testing.T, what, expression string) {
	t.Helper()
	table, err := os.ReadFile(filepath.Join(root, "docs/METRICS.md"))
	require.NoError(t, err)
	used := metricName.FindAllString(expression, -1)
	assert.True(t, len(used) > 0 || strings.HasPrefix(expression, "up{"), "%s asks for nothing of ours: %s", what, expression)
	for _, name := range used {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		assert.Contains(t, string(table), "| `"+base+"` |", what)
	}
	assert.Equal(t, strings.Count(expression, "("), strings.Count(expression, ")"), "%s: %s", what, expression)
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalWithOptions(text, into, yaml.Strict()), path)
}

type alertFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

func TestAlertsUseMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	var file alertFile
	readYAML(t, "deploy/prometheus/alerts.yml", &file)
	require.Len(t, file.Groups, 1)
	seen := map[string]bool{}
	for _, rule := range file.Groups[0].Rules {
		assert.False(t, seen[rule.Alert], "%s is there twice", rule.Alert)
		seen[rule.Alert] = true
		checkExpression(t, rule.Alert, rule.Expr)
		assert.Contains(t, []string{"warning", "critical"}, rule.Labels["severity"], rule.Alert)
		assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		assert.NotEmpty(t, rule.Annotations["action"], "%s doesn't tell what to do", rule.Alert)
	}
	assert.Greater(t, len(seen), 8)
}

func TestPrometheusScrapesTheRelays(t *testing.T) {
	t.Parallel()
	var file struct {
		Global        map[string]string
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string `yaml:"job_name"`
			Authorization struct {
				Type            string
				CredentialsFile string `yaml:"credentials_file"`
			}
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, "deploy/prometheus/prometheus.yml", &file)
	project := loadAll(t)
	prometheus := service(t, project, "prometheus")
	for _, path := range file.RuleFiles {
		assert.True(t, exists(mounted(t, prometheus, path)), path)
	}
	require.Len(t, file.ScrapeConfigs, 1)
	scrape := file.ScrapeConfigs[0]
	assert.Equal(t, []string{"relay-1:9180", "relay-2:9180"}, scrape.StaticConfigs[0].Targets)
	assert.Equal(t, project.Secrets["console_token"].File, outside(t, project, prometheus, scrape.Authorization.CredentialsFile))
	assert.Equal(t, "outbox-relay", scrape.JobName, "the alert on up names it")
}

type dashboard struct {
	Title      string
	Templating struct {
		List []struct{ Name, Query string }
	}
	Panels []struct {
		ID                 int
		Title, Description string
		GridPos            struct{ X, Y, W, H int }
		Targets            []struct{ Expr, RefID string }
	}
}

func TestDashboardUsesMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(root + "/deploy/grafana/dashboards/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var d dashboard
		require.NoError(t, json.Unmarshal(text, &d))
		require.NotEmpty(t, d.Panels)
		ids := map[int]bool{}
		for _, panel := range d.Panels {
			assert.False(t, ids[panel.ID], panel.Title)
			ids[panel.ID] = true
			assert.NotEmpty(t, panel.Description, panel.Title)
			assert.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
			require.NotEmpty(t, panel.Targets, panel.Title)
			for _, target := range panel.Targets {
				checkExpression(t, panel.Title, target.Expr)
			}
		}
		for _, variable := range d.Templating.List {
			checkExpression(t, variable.Name, variable.Query)
		}
	}
}

func TestGrafanaFindsItsDashboardsAndSource(t *testing.T) {
	t.Parallel()
	grafana := service(t, loadAll(t), "grafana")
	var dashboards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type string
			Options    struct{ Path string }
		}
	}
	readYAML(t, "deploy/grafana/provisioning/dashboards/outbox-relay.yml", &dashboards)
	folder := dashboards.Providers[0].Options.Path
	source := mounted(t, grafana, folder)
	home := *grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	assert.True(t, exists(filepath.Join(source, strings.TrimPrefix(home, folder))))

	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool `yaml:"isDefault"`
		}
	}
	readYAML(t, "deploy/grafana/provisioning/datasources/prometheus.yml", &sources)
	assert.Equal(t, "http://prometheus:9090", sources.Datasources[0].URL)
	text, err := os.ReadFile(filepath.Join(source, "outbox-relay.json"))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"uid": "`+sources.Datasources[0].UID+`"`)
}
