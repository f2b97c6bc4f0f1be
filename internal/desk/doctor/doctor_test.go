package doctor_test

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/desk/doctor"
	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/test/harness"
)

func TestMain(m *testing.M) {
	checkpoint.RouteLibraryLog(zerolog.Nop())
	goleak.VerifyTestMain(m,
		// A request of sarama's registers a meter in go-metrics' global registry, which starts one goroutine for the whole
		// process.
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

func nowhere(t *testing.T) *config.Config {
	t.Helper()
	loaded, err := config.Load(config.Input{File: harness.Target{
		Primary: harness.Endpoint{Addr: harness.FreeAddr(t), User: "relay", Password: "secret"}, Tables: []string{"app.local_message"},
		Brokers: []string{harness.FreeAddr(t)}, RedisURL: "redis://" + harness.FreeAddr(t) + "/0",
	}.Settings(t).Write(t)})
	require.NoError(t, err)
	return loaded.Config
}

// Servers that are away are findings, each by itself and in a fixed order.
func TestServersThatAreAway(t *testing.T) {
	t.Parallel()
	c := nowhere(t)
	found, err := doctor.Examine(t.Context(), c, c.Sources, zerolog.Nop(), 20*time.Second)
	require.NoError(t, err)
	var failed []string
	for _, f := range found.Findings {
		if f.Level == diagnose.Failure {
			failed = append(failed, f.Part)
		}
	}
	assert.Len(t, failed, found.Failures)
	assert.Equal(t, []string{"primary", "binlog", "kafka", "redis"}, failed)
	assert.Len(t, found.Brief().Findings, found.Failures+found.Warnings)
}

func TestExamineEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := nowhere(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := doctor.Examine(ctx, c, c.Sources, zerolog.Nop(), time.Second)
	require.ErrorIs(t, err, context.Canceled)
}
