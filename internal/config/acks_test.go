package config_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/config"
)

func TestAckGroupsFromEverywhere(t *testing.T) {
	t.Parallel()
	want := config.Groups{"order-events": {"points", "logistics"}, "1e3": {"a b"}}
	for name, cfg := range map[string]*config.Config{
		"file":        load(t, "acks:\n  groups:\n    order-events: [points, logistics]\n    \"1e3\": [a b]\n", nil, nil),
		"environment": load(t, "", []string{"OUTBOX_RELAY_ACKS__GROUPS={order-events: [points, logistics], 1e3: [a b]}"}, nil),
		"flag":        load(t, "", nil, []string{"acks.groups.order-events=points,logistics", "acks.groups.1e3=[a b]"}),
		"merged":      load(t, "acks: {groups: {order-events: [other], 1e3: [a b]}}", nil, []string{"acks.groups.order-events=points,logistics"}),
	} {
		assert.Equal(t, want, cfg.Acks.Groups, name)
	}
}

// Topics are names of the user's: whatever they are, what is printed reads back as the same.
func TestAckGroupsPrintReadsBack(t *testing.T) {
	t.Parallel()
	cfg := config.Defaults()
	cfg.Acks.Groups = config.Groups{
		"order-events": {"points", "logistics"}, "on": {"null"}, "a: b": {"x"}, "${HOME}": {"y"}, "日本": {"z"}, "7": {"1.0"},
	}
	printed, err := cfg.Print()
	require.NoError(t, err)
	file := write(t, "")
	require.NoError(t, os.WriteFile(file, []byte(printed), 0o600))
	result, err := config.Load(config.Input{File: file})
	require.NoError(t, err, printed)
	assert.Equal(t, cfg, result.Config, printed)
	assert.Equal(t, map[string]any{"on": []any{"null"}}["on"], cfg.Redacted()["acks"].(map[string]any)["groups"].(map[string]any)["on"]) //nolint:errcheck // a test may panic
}

func TestAckConsumerGroupOfSeveralSources(t *testing.T) {
	t.Parallel()
	found := problems(t, "sources: [{name: a}, {name: b}]\nacks: {consumer_group: one}\n", nil, nil)
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Message, "put {source} into it")
}
