//go:build !unit

package main

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/examples/orders/order"
	"example.com/outbox-relay/examples/orders/points"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestEachPaidOrderHasItsPointsOnce kills the order service, the relay and the points service at random, while customers order and
// pay.
func TestEachPaidOrderHasItsPointsOnce(t *testing.T) {
	const kills = 9
	mysql, kafka, redis := rig.MySQL(t), rig.Kafka(t, rig.Own()), rig.Redis(t)
	kafka.CreateTopic(t, order.Topic, 3, nil)
	kafka.CreateTopic(t, points.DeadLetterTopic, 1, nil)
	services := filepath.Join(t.TempDir(), "services")
	build := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", services, "example.com/outbox-relay/examples/orders")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	log := t.Output()
	play, err := newTroupe(t.Context(), servers{
		sql: mysql.Addr, user: mysql.User, password: mysql.Password, shop: mysql.Database(t), loyalty: mysql.Database(t),
		kafka: kafka.Brokers, redis: redis.URL(), prefix: redis.Prefix(t),
	}, harness.Binary(t), services, t.TempDir(), log)
	require.NoError(t, err)
	require.NoError(t, play.start(t.Context(), roles...))

	c := &customers{url: "http://" + play.listen}
	stop := make(chan struct{})
	shopping := make(chan error, 1) // size 1: a test that has failed does not wait for it
	go func() { shopping <- c.shop(t.Context(), 4, 1_000_000, stop) }()
	for i := range kills {
		goal := c.paid.Load() + 20 + rand.Int64N(100)
		harness.Eventually(t, 30*time.Second, "more orders paid", func() (bool, string) { return c.paid.Load() >= goal, "" })
		require.NoError(t, play.kill(t.Context(), roles[i%len(roles)]))
	}
	close(stop)
	require.NoError(t, <-shopping)
	v, err := play.judge(t.Context(), time.Minute)
	require.NoError(t, err)
	t.Log(v)
	assert.True(t, v.ok(), v)
	require.NoError(t, play.stop())
}
