package checkpoint_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
)

func miniBench(t testing.TB) bench {
	server := miniredis.RunT(t)
	raw := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { assert.NoError(t, raw.Close()) })
	return newBench(t, raw, false, "redis://"+server.Addr())
}

func TestConformanceOnMiniredis(t *testing.T) {
	t.Parallel()
	conformance(t, func(t *testing.T) bench { return miniBench(t) })
}
