package compose_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// instruction is one line of a Dockerfile, continued lines joined.
type instruction struct{ name, rest string }

type dockerfile []instruction

func parseDockerfile(t *testing.T) dockerfile {
	t.Helper()
	text, err := os.ReadFile(root + "/Dockerfile")
	require.NoError(t, err)
	var parsed dockerfile
	joined := regexp.MustCompile(`\\\n`).ReplaceAllString(string(text), " ")
	for line := range strings.Lines(joined) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		parsed = append(parsed, instruction{name, strings.TrimSpace(rest)})
	}
	return parsed
}

func (d dockerfile) all(name string) []string {
	var found []string
	for _, i := range d {
		if i.name == name {
			found = append(found, i.rest)
		}
	}
	return found
}

func (d dockerfile) user(t *testing.T) string {
	t.Helper()
	users := d.all("USER")
	require.Len(t, users, 1)
	return users[0]
}

func (d dockerfile) entrypoint(t *testing.T) string {
	t.Helper()
	var words []string
	entrypoints := d.all("ENTRYPOINT")
	require.Len(t, entrypoints, 1)
	require.NoError(t, json.Unmarshal([]byte(entrypoints[0]), &words), "there is no shell to split it")
	require.Len(t, words, 1)
	return words[0]
}

func TestImageIsBuiltInStagesAndHoldsOneStaticBinary(t *testing.T) {
	t.Parallel()
	d := parseDockerfile(t)
	stages := d.all("FROM")
	require.Len(t, stages, 2)
	assert.Equal(t, "scratch", stages[1])
	assert.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, d.user(t), "a name can't be checked by an orchestrator's non-root rule")

	build := strings.Join(d.all("RUN"), "\n")
	assert.Contains(t, build, "CGO_ENABLED=0")
	assert.Contains(t, build, "/rootfs"+d.entrypoint(t)+" ./cmd/outbox-relay")
	assert.Contains(t, build, "ca-certificates.crt")
	assert.Contains(t, build, "-X main.version=$VERSION")
	assert.Contains(t, strings.Join(d.all("HEALTHCHECK"), ""), `CMD ["`+d.entrypoint(t)+`", "healthcheck"]`)
	assert.Equal(t, []string{`["run"]`}, d.all("CMD"))
}

func TestImageIsBuiltByTheGoOfTheModule(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile(root + "/go.mod")
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(mod)
	require.NotNil(t, version)
	assert.Contains(t, parseDockerfile(t).all("FROM")[0], " golang:"+string(version[1])+"-")
}

func TestWhatIsCopiedExistsAndIsSent(t *testing.T) {
	t.Parallel()
	ignored, err := os.ReadFile(root + "/.dockerignore")
	require.NoError(t, err)
	for _, copied := range parseDockerfile(t).all("COPY") {
		if strings.HasPrefix(copied, "--from=") {
			continue
		}
		words := strings.Fields(copied)
		for _, path := range words[:len(words)-1] {
			assert.True(t, exists(filepath.Join(root, path)), "COPY %s", path)
			assert.NotContains(t, strings.Split(string(ignored), "\n"), path)
		}
	}
	for _, needed := range []string{"cmd", "config", "relay", "test", "go.mod", "go.sum"} {
		assert.NotContains(t, strings.Split(string(ignored), "\n"), needed)
	}
}
