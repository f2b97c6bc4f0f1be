package compose_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/config"
)

const configTarget = "/etc/outbox-relay/outbox-relay.yaml"

var secretPath = regexp.MustCompile(`/run/secrets/([a-z_]+)`)

// mounted returns what the service finds at a path inside its container.
func mounted(t *testing.T, s types.ServiceConfig, target string) string {
	t.Helper()
	for _, volume := range s.Volumes {
		if volume.Target == target {
			return volume.Source
		}
	}
	require.FailNow(t, "nothing is mounted", "%s at %s", s.Name, target)
	return ""
}

// outside replaces the paths of secrets by those of the files that the service mounts there. A secret that it doesn't mount is
// left where it surely isn't, so that reading it fails as in the container.
func outside(t *testing.T, project *types.Project, s types.ServiceConfig, text string) string {
	t.Helper()
	return secretPath.ReplaceAllStringFunc(text, func(path string) string {
		name := secretPath.FindStringSubmatch(path)[1]
		if !mounts(s, name) {
			return path
		}
		return project.Secrets[name].File
	})
}

// loadRelayConfig does what `outbox-relay config check` does in the service's container.
func loadRelayConfig(t *testing.T, project *types.Project, name string) (*config.Result, error) {
	t.Helper()
	s := service(t, project, name)
	text, err := os.ReadFile(mounted(t, s, configTarget))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "outbox-relay.yaml")
	require.NoError(t, os.WriteFile(file, []byte(outside(t, project, s, string(text))), 0o600))
	var environ []string
	for key, value := range s.Environment {
		require.NotNil(t, value, key)
		environ = append(environ, key+"="+outside(t, project, s, *value))
	}
	return config.Load(config.Input{File: file, Environ: environ})
}

func relayConfig(t *testing.T, project *types.Project, name string) *config.Config {
	t.Helper()
	result, err := loadRelayConfig(t, project, name)
	require.NoError(t, err)
	return result.Config
}

func TestTheImageFindsItsConfigurationUnasked(t *testing.T) {
	t.Parallel()
	assert.Contains(t, config.SearchPaths(), configTarget)
}

func TestConfigurationPassesTheCheck(t *testing.T) {
	t.Parallel()
	project := loadAll(t)
	for _, name := range append([]string{"demo"}, relays...) {
		result, err := loadRelayConfig(t, project, name)
		require.NoError(t, err, name)
		assert.Empty(t, result.Warnings, name)
		c := result.Config
		require.Len(t, c.Sources, 1)
		assert.False(t, c.Sources[0].Primary.Password.IsZero(), name)
		assert.False(t, c.Console.Token.IsZero(), "%s listens to the network without a token", name)

		addresses := append([]string{c.Sources[0].Primary.Address}, c.Kafka.Brokers...)
		urls := make([]string, len(c.Redis.URL))
		for i, u := range c.Redis.URL {
			urls[i] = u.Reveal()
			parsed, err := url.Parse(urls[i])
			require.NoError(t, err)
			addresses = append(addresses, parsed.Host)
		}
		require.NoError(t, checkpoint.Config{URLs: urls, Password: c.Redis.Password.Reveal()}.Validate())
		for _, address := range addresses {
			host, _, err := net.SplitHostPort(address)
			require.NoError(t, err)
			assert.Contains(t, project.ServiceNames(), host, "%s asks %s", name, address)
		}
	}
	assert.Equal(t, "relay", relayConfig(t, project, "relay-1").Sources[0].Primary.User)
	assert.Equal(t, "app", relayConfig(t, project, "demo").Sources[0].Primary.User)
}

func TestKafkaAdvertisesWhatIsAsked(t *testing.T) {
	t.Parallel()
	project := loadAll(t)
	kafka := service(t, project, "kafka")
	advertised := *kafka.Environment["KAFKA_ADVERTISED_LISTENERS"]
	for _, broker := range relayConfig(t, project, "relay-1").Kafka.Brokers {
		assert.Contains(t, advertised, "://"+broker)
	}
	assert.Contains(t, advertised, "://localhost:"+kafka.Ports[0].Published)
}

func TestConsolePortIsPublished(t *testing.T) {
	t.Parallel()
	project := loadAll(t)
	for _, name := range relays {
		host, port, err := net.SplitHostPort(relayConfig(t, project, name).Console.Listen)
		require.NoError(t, err)
		assert.Equal(t, "0.0.0.0", host, "loopback inside a container is nobody's")
		assert.Equal(t, "9180", port)
		assert.EqualValues(t, 9180, service(t, project, name).Ports[0].Target)
	}
}
