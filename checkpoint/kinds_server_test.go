//go:build !unit

package checkpoint_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/test/rig"
)

// runLine runs a command as an operator types it.
func runLine(ctx context.Context, raw redis.UniversalClient, line string) error {
	var args []any
	for word := range strings.FieldsSeq(line) {
		args = append(args, word)
	}
	return raw.Do(ctx, args...).Err()
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return n
}

// A cluster of one node with all slots: scripts with keys of several slots are refused there as in a big one.
func TestConformanceOnCluster(t *testing.T) {
	t.Parallel()
	server := rig.Redis(t, rig.Args("--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(freePort(t))))
	raw := rawClient(t, server)
	require.NoError(t, raw.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	require.Eventually(t, func() bool {
		info, err := raw.ClusterInfo(t.Context()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	}, 20*time.Second, 50*time.Millisecond)
	cluster := strings.Replace(server.URL(), "redis://", "redis+cluster://", 1)
	conformance(t, func(t *testing.T) bench { return newBench(t, raw, true, cluster) })

	t.Run("a list of addresses is a cluster", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, raw, true, server.URL(), server.URL())
		lead(t, b, 9)
		report, err := b.store.Inspect(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "ok", report.Worst().String(), "%+v", report)
	})
	t.Run("addressed as one server it says so", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, raw, false, server.URL())
		_, err := b.store.NextEpoch(t.Context(), source)
		require.Equal(t, checkpoint.CodeTopology, checkpoint.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, "redis+cluster://")
	})
}

// sentinel starts a real one that watches the primary, and returns its address.
func sentinel(t *testing.T, primary *rig.RedisServer) string {
	t.Helper()
	host, port, err := net.SplitHostPort(primary.Addr)
	require.NoError(t, err)
	own := strconv.Itoa(freePort(t))
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	require.NoError(t, os.WriteFile(conf, []byte(strings.Join([]string{
		"port " + own, "bind 127.0.0.1", "dir " + filepath.Dir(conf),
		"sentinel monitor main " + host + " " + port + " 1",
		"sentinel auth-pass main " + primary.Password,
		"sentinel down-after-milliseconds main 500",
		"sentinel failover-timeout main 2000", "",
	}, "\n")), 0o600))
	// The shell ends the sentinel when its own input ends, so also when the test is killed.
	run := exec.CommandContext(t.Context(), "sh", "-c", `redis-server "$0" --sentinel >/dev/null & cat >/dev/null; kill -9 $!`, conf)
	in, err := run.StdinPipe()
	require.NoError(t, err)
	run.Cancel = in.Close
	require.NoError(t, run.Start())
	t.Cleanup(func() {
		// It ended because its input did: how doesn't matter.
		_ = run.Wait()
	})
	return "127.0.0.1:" + own
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	primary := rig.Redis(t, rig.Args("--masterauth", "redis-secret", "--repl-diskless-sync-delay", "0"))
	_, port, err := net.SplitHostPort(primary.Addr)
	require.NoError(t, err)
	replica := rig.Redis(t, rig.Args("--masterauth", "redis-secret", "--replicaof", "127.0.0.1 "+port))
	address := sentinel(t, primary)
	ctx := t.Context()

	raw := rawClient(t, replica)
	b := newBench(t, raw, false, "redis+sentinel://:redis-secret@127.0.0.1:1,"+address+"/main/0")
	var epoch int64
	require.Eventually(t, func() bool {
		epoch, err = b.store.NextEpoch(ctx, source)
		return err == nil
	}, 20*time.Second, 50*time.Millisecond)
	require.NoError(t, b.store.Save(ctx, source, record(epoch, 10)))
	lease, err := b.store.AcquireLease(ctx, source, time.Minute)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		pos, err := raw.HGet(ctx, b.key("checkpoint"), "pos").Result()
		known, errKnown := sentinelKnowsReplica(ctx, address)
		return err == nil && pos == "10" && errKnown == nil && known
	}, 30*time.Second, 50*time.Millisecond, "the replica never got the record, or the sentinel never saw it")

	primary.Kill(t)
	require.Eventually(t, func() bool {
		err := b.store.Save(ctx, source, record(epoch, 20))
		require.NotErrorIs(t, err, checkpoint.ErrFenced)
		return err == nil
	}, 30*time.Second, 50*time.Millisecond)
	assert.Equal(t, "20", raw.HGet(ctx, b.key("checkpoint"), "pos").Val())
	assert.True(t, lease.Valid())
	require.NoError(t, lease.Release(ctx))
}

func sentinelKnowsReplica(ctx context.Context, address string) (bool, error) {
	client := redis.NewSentinelClient(&redis.Options{Addr: address, DisableIdentity: true})
	replicas, err := client.Replicas(ctx, "main").Result()
	if errClose := client.Close(); err == nil {
		err = errClose
	}
	return len(replicas) > 0, err
}
