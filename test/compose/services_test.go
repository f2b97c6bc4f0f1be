package compose_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A tag such as 8.4.6, v3.5.0 or 7.4.5-alpine: it names one release.
var release = regexp.MustCompile(`:v?\d+\.\d+\.\d+(-[a-z0-9.]+)?$`)

func TestImagesArePinned(t *testing.T) {
	t.Parallel()
	for _, s := range loadAll(t).Services {
		if s.Build == nil {
			assert.Regexp(t, release, s.Image, s.Name)
		}
	}
	project := loadAll(t)
	for name, want := range map[string]string{"mysql": "mysql:8.4.", "kafka": "apache/kafka:4.", "redis": "redis:7."} {
		assert.Contains(t, service(t, project, name).Image, want)
	}
}

func TestPortsAreOpenOnThisMachineOnly(t *testing.T) {
	t.Parallel()
	taken := map[string]string{}
	for _, s := range loadAll(t).Services {
		assert.Empty(t, s.NetworkMode, s.Name)
		for _, port := range s.Ports {
			assert.Equal(t, "127.0.0.1", port.HostIP, "%s: %s", s.Name, port.Published)
			assert.Empty(t, taken[port.Published], "%s and %s want port %s", s.Name, taken[port.Published], port.Published)
			taken[port.Published] = s.Name
		}
	}
	assert.Len(t, taken, 7)
}

func TestServicesAreHealthChecked(t *testing.T) {
	t.Parallel()
	project := loadAll(t)
	for _, s := range project.Services {
		assert.False(t, s.Privileged, s.Name)
		assert.Contains(t, s.SecurityOpt, "no-new-privileges:true", s.Name)
		if s.Name == "demo" {
			assert.Empty(t, s.Restart, "it ends with a verdict")
		} else {
			require.NotNil(t, s.HealthCheck, s.Name)
			assert.GreaterOrEqual(t, len(s.HealthCheck.Test), 2, s.Name)
			assert.NotNil(t, s.HealthCheck.Interval, s.Name)
			assert.Equal(t, "unless-stopped", s.Restart, s.Name)
		}
		for name, dependency := range s.DependsOn {
			assert.Equal(t, types.ServiceConditionHealthy, dependency.Condition, "%s waits for %s", s.Name, name)
			assert.NotNil(t, service(t, project, name).HealthCheck, "%s waits for the health of %s", s.Name, name)
		}
	}
	for _, name := range relays {
		assert.Subset(t, service(t, project, name).GetDependencies(), []string{"kafka", "mysql", "redis"})
	}
}

func TestRelaysAreLockedDown(t *testing.T) {
	t.Parallel()
	project := loadAll(t)
	image := parseDockerfile(t)
	for _, name := range append([]string{"demo"}, relays...) {
		s := service(t, project, name)
		assert.True(t, s.ReadOnly, name)
		assert.Equal(t, image.user(t), s.User, name)
		assert.Equal(t, []string{"ALL"}, s.CapDrop, name)
		assert.Empty(t, s.CapAdd, name)
		require.Len(t, s.Tmpfs, 1, name)
		assert.True(t, strings.HasPrefix(s.Tmpfs[0], "/tmp:"), "%s has no place for the spill file", name)
		assert.NotZero(t, s.MemLimit, name)
	}
}

func TestRelaysAreHealthCheckedByTheirOwnBinary(t *testing.T) {
	t.Parallel()
	project := loadAll(t)
	image := parseDockerfile(t)
	for _, name := range relays {
		s := service(t, project, name)
		assert.Equal(t, types.HealthCheckTest{"CMD", image.entrypoint(t), "healthcheck"}, s.HealthCheck.Test)
		assert.Equal(t, types.ShellCommand{"run"}, s.Command)
		require.NotNil(t, s.StopGracePeriod)
		shutdown := relayConfig(t, project, name).Shutdown.Timeout
		assert.Greater(t, time.Duration(*s.StopGracePeriod), shutdown, "%s would be killed while it drains", name)
	}
}

// The standby must be able to do whatever the leader does.
func TestRelaysAreAlike(t *testing.T) {
	t.Parallel()
	project := load(t)
	first, second := service(t, project, relays[0]), service(t, project, relays[1])
	assert.NotEqual(t, first.Hostname, second.Hostname, "the server id is derived from it")
	first.Name, first.Hostname, first.Ports = second.Name, second.Hostname, second.Ports
	assert.Equal(t, second, first)
}
