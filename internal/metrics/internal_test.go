package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Source ignores the registry's answer because this proves that it never refuses.
func TestDefinitionsAreAccepted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	for _, name := range []string{"a", "b", ""} {
		b := builder{source: name}
		newSource(&b, "1")
		require.NoError(t, b.register(reg))
		assert.Len(t, b.definitions, len(b.collectors))
	}
	again := builder{source: "a"}
	newSource(&again, "1")
	require.Error(t, again.register(reg), "the same source twice")
	_, err := reg.Gather()
	assert.NoError(t, err)
}
