//go:build !unit

package rig_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

func redisClient(t *testing.T, server *rig.RedisServer) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(server.URL())
	require.NoError(t, err)
	options.MaxRetries = -1
	client := redis.NewClient(options)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client
}

func TestSharedRedisIsOneAndRefusesToStop(t *testing.T) {
	t.Parallel()
	server := rig.Redis(t)
	assert.Equal(t, server.Addr, rig.Redis(t).Addr)
	first, second := server.Prefix(t), server.Prefix(t)
	assert.NotEqual(t, first, second)
	require.NoError(t, redisClient(t, server).Ping(t.Context()).Err())
	assert.True(t, fails(t, func(t testing.TB) { server.Kill(t) }))
}

func TestRedisKeepsItsDataOverRestartAndKill(t *testing.T) {
	t.Parallel()
	server := rig.Redis(t, rig.Args("--databases", "3"))
	client := redisClient(t, server)
	require.NoError(t, client.Set(t.Context(), "a", "1", 0).Err())
	server.Restart(t)
	require.NoError(t, client.Set(t.Context(), "b", "2", 0).Err())
	server.Kill(t)
	require.Error(t, client.Ping(t.Context()).Err())
	server.Start(t)
	got, err := client.MGet(t.Context(), "a", "b").Result()
	require.NoError(t, err)
	assert.Equal(t, []any{"1", "2"}, got)
	databases, err := client.ConfigGet(t.Context(), "databases").Result()
	require.NoError(t, err)
	assert.Equal(t, "3", databases["databases"])

	server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.Error(t, client.Ping(ctx).Err(), "a paused server answers nothing")
	server.Resume(t)
	require.NoError(t, client.Ping(t.Context()).Err())
}
