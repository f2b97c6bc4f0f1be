//go:build !unit

package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

func TestExecRunsTheCommandWithTheServersAndExitsAsItDid(t *testing.T) {
	t.Setenv("OUTBOX_RELAY_CACHE", "") // what a test of the product must not see
	script := `test -f "$RIG_FILE" && test -n "$RIG_CACHE" && test -z "${OUTBOX_RELAY_CACHE+set}" && exit 7`
	code, err := run(t.Context(), []string{"exec", "--", "bash", "-c", script}, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, 7, code)
}

// What up prints can be saved as the configuration, and the user in it can log in.
func TestUpPrintsAConfigurationThatWorks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all, err := rig.StartAll(ctx)
	require.NoError(t, err)
	defer func() { assert.NoError(t, all.Close()) }()
	var out bytes.Buffer
	done := make(chan error, 1)
	printed := make(chan struct{})
	go func() {
		_, err := up(ctx, all, writer(func(p []byte) (int, error) {
			defer close(printed)
			return out.Write(p)
		}))
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("up ended: %v", err)
	case <-printed:
	}
	var config struct {
		Source struct {
			Primary struct{ Address, User, Password string }
			Tables  []string
		}
		Kafka struct{ Brokers []string }
		Redis struct{ URL string }
	}
	require.NoError(t, yaml.UnmarshalWithOptions(out.Bytes(), &config, yaml.Strict()))
	assert.Equal(t, []string{"app.local_message"}, config.Source.Tables)
	assert.Equal(t, all.Kafka.Brokers, config.Kafka.Brokers)
	assert.Equal(t, all.Redis.URL(), config.Redis.URL)
	login := &rig.Server{
		Flavor: rig.FlavorMySQL, Addr: config.Source.Primary.Address,
		User: config.Source.Primary.User, Password: config.Source.Primary.Password,
	}
	require.NoError(t, login.Exec(t.Context(), "SELECT * FROM app.local_message"))

	cancel()
	require.NoError(t, <-done)
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
