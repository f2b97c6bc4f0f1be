package compose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The files live two folders up.
const (
	root        = "../.."
	composeFile = root + "/docker-compose.yml"
)

var relays = []string{"relay-1", "relay-2"}

// load reads the project as `docker compose` does, with no variable set.
func load(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{composeFile}, cli.WithProfiles(profiles), cli.WithResolvedPaths(true))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

func loadAll(t *testing.T) *types.Project { return load(t, "demo", "observability") }

func service(t *testing.T, project *types.Project, name string) types.ServiceConfig {
	t.Helper()
	s, err := project.GetService(name)
	require.NoError(t, err)
	return s
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	base := []string{"kafka", "mysql", "redis", "relay-1", "relay-2"}
	assert.ElementsMatch(t, base, load(t).ServiceNames())
	assert.ElementsMatch(t, append([]string{"demo"}, base...), load(t, "demo").ServiceNames())
	assert.ElementsMatch(t, append([]string{"grafana", "prometheus"}, base...), load(t, "observability").ServiceNames())
}

func TestVariablesHaveDefaults(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(composeFile)
	require.NoError(t, err)
	var file map[string]any
	require.NoError(t, yaml.Unmarshal(text, &file))
	found := template.ExtractVariables(file, template.DefaultPattern)
	require.NotEmpty(t, found)
	for name, variable := range found {
		assert.NotEmpty(t, variable.DefaultValue, "%s has no default", name)
		assert.True(t, strings.HasPrefix(name, "OUTBOX_"), "%s may be someone else's variable", name)
	}
}

func TestPathsExist(t *testing.T) {
	t.Parallel()
	project := loadAll(t)
	for _, s := range project.Services {
		for _, volume := range s.Volumes {
			if volume.Type != types.VolumeTypeBind {
				assert.Contains(t, project.Volumes, volume.Source, s.Name)
				continue
			}
			assert.True(t, volume.ReadOnly, "%s may write to %s", s.Name, volume.Source)
			assert.True(t, exists(volume.Source), "%s mounts %s, which isn't there", s.Name, volume.Source)
		}
		for _, file := range s.EnvFiles {
			assert.True(t, exists(file.Path), "%s reads %s, which isn't there", s.Name, file.Path)
		}
		if s.Build != nil {
			assert.True(t, exists(filepath.Join(s.Build.Context, s.Build.Dockerfile)), "%s has no Dockerfile", s.Name)
		}
		for _, secret := range s.Secrets {
			assert.Contains(t, project.Secrets, secret.Source, s.Name)
		}
	}
	for name, secret := range project.Secrets {
		text, err := os.ReadFile(secret.File)
		require.NoError(t, err, name)
		assert.NotEmpty(t, strings.TrimSpace(string(text)), name)
		info, err := os.Stat(secret.File)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o004), info.Mode().Perm()&0o004, "%s can't be read by the container's user", name)
	}
	script, err := os.Stat(filepath.Join(root, "deploy/compose/mysql/10-outbox.sh"))
	require.NoError(t, err)
	assert.NotZero(t, script.Mode().Perm()&0o111, "the image sources what isn't executable, with other rules")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestSecretsAreFilesAndEachIsUsed(t *testing.T) {
	t.Parallel()
	project := loadAll(t)
	used := map[string]bool{}
	for _, s := range project.Services {
		for _, secret := range s.Secrets {
			used[secret.Source] = true
		}
		for name, value := range s.Environment {
			require.NotNil(t, value, "%s would take %s from the shell", s.Name, name)
			if strings.Contains(name, "PASSWORD") || strings.Contains(name, "TOKEN") {
				file, ok := strings.CutPrefix(*value, "/run/secrets/")
				require.True(t, ok, "%s has a secret in %s", s.Name, name)
				assert.True(t, mounts(s, file), "%s reads the secret %s, which it doesn't mount", s.Name, file)
			}
		}
	}
	for name := range project.Secrets {
		assert.True(t, used[name], "nobody uses the secret %s", name)
	}
}

func mounts(s types.ServiceConfig, secret string) bool {
	for _, mounted := range s.Secrets {
		if mounted.Source == secret {
			return true
		}
	}
	return false
}
