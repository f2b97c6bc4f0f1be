package workload_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
)

func TestDefaultIsValid(t *testing.T) {
	t.Parallel()
	cfg := workload.Default([]string{"app.local_message"}, []string{"orders"})
	require.NoError(t, cfg.Validate())
	assert.Equal(t, "app.orders", cfg.Orders)
}

func TestValidateNamesEverything(t *testing.T) {
	t.Parallel()
	cfg := workload.Config{Tables: []string{"x"}, Orders: "y", Delayed: 2, MaxDelay: time.Millisecond, Rollbacks: -1}
	err := cfg.Validate()
	for _, word := range []string{"topics", `"x"`, `"y"`, "writers", "txn", "batch", "keys", "bytes", "max delay", "delayed: 2", "rollbacks: -1", "patience"} {
		require.ErrorContains(t, err, word)
	}
	_, err = workload.New(nil, cfg, oracle.NewLedger())
	require.ErrorContains(t, err, "workload: ")
}
