//go:build !unit

package checkpoint_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/test/rig"
)

// rawClient is a plain client, for what the store must not be asked for.
func rawClient(t testing.TB, server *rig.RedisServer) *redis.Client {
	t.Helper()
	raw := redis.NewClient(&redis.Options{Addr: server.Addr, Password: server.Password, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { assert.NoError(t, raw.Close()) })
	return raw
}

func realBench(t testing.TB, opts ...rig.Option) (bench, *rig.RedisServer) {
	server := rig.Redis(t, opts...)
	return newBench(t, rawClient(t, server), false, server.URL()), server
}

func TestConformanceOnRedis(t *testing.T) {
	t.Parallel()
	conformance(t, func(t *testing.T) bench { b, _ := realBench(t); return b })
}

func TestFencingOnRedis(t *testing.T) {
	t.Parallel()
	b, _ := realBench(t)
	fencing(t, b)
}

func TestContentionOnRedis(t *testing.T) {
	t.Parallel()
	b, _ := realBench(t)
	contend(t, b)
}

// S81: Redis goes and comes five times while a relay saves as it does, once every so often.
func TestSavesResumeWhenRedisComesBack(t *testing.T) {
	t.Parallel()
	b, server := realBench(t, rig.Own())
	ctx := t.Context()
	epoch := lead(t, b, 1)
	pos := uint64(1)
	saved := func() bool {
		pos++
		err := b.store.Save(ctx, source, record(epoch, pos))
		if err != nil {
			require.NotErrorIs(t, err, checkpoint.ErrFenced)
			assert.Contains(t, []checkpoint.Code{checkpoint.CodeAway, checkpoint.CodeLoading}, checkpoint.CodeOf(err), "%v", err)
		}
		return err == nil
	}
	for range 5 {
		server.Stop(t)
		for range 10 {
			require.False(t, saved())
			_, err := b.store.Load(ctx, source)
			require.NotErrorIs(t, err, checkpoint.ErrNone)
		}
		server.Start(t)
		require.Eventually(t, saved, 5*time.Second, 20*time.Millisecond)
		got, err := b.store.Load(ctx, source)
		require.NoError(t, err)
		require.Equal(t, pos, got.Position.Pos)
	}
}

// A paused Redis takes requests and answers later: the call ends in time, and what arrives late never goes back.
func TestAPausedRedisNeverTakesTheCheckpointBack(t *testing.T) {
	t.Parallel()
	b, server := realBench(t, rig.Own())
	ctx := t.Context()
	epoch := lead(t, b, 1)
	server.Pause(t)
	for pos := range uint64(3) {
		start := time.Now()
		err := b.store.Save(ctx, source, record(epoch, 10+pos))
		require.Equal(t, checkpoint.CodeAway, checkpoint.CodeOf(err), "%v", err)
		require.Less(t, time.Since(start), 3*time.Second)
	}
	server.Resume(t)
	require.Eventually(t, func() bool { return b.store.Save(ctx, source, record(epoch, 50)) == nil }, 5*time.Second, 10*time.Millisecond)
	got, err := b.store.Load(ctx, source)
	require.NoError(t, err)
	assert.EqualValues(t, 50, got.Position.Pos)
}

// S83: a Redis that reads its data set answers LOADING, which is not "there is no checkpoint".
func TestLoadingIsNotNone(t *testing.T) {
	t.Parallel()
	// Each key takes 500 microseconds to load.
	b, server := realBench(t, rig.Args("--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024", "--aof-use-rdb-preamble", "no"))
	ctx := t.Context()
	lead(t, b, 77)
	pipe := rawClient(t, server).Pipeline()
	for i := range 4000 {
		pipe.SetNX(ctx, b.key("filler")+string(rune('a'+i%26))+time.Duration(i).String(), "x", 0)
	}
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	require.NoError(t, b.raw.BgRewriteAOF(ctx).Err())
	require.Eventually(t, func() bool {
		info, err := b.raw.InfoMap(ctx, "persistence").Result()
		return err == nil && info["Persistence"]["aof_rewrite_in_progress"] == "0" && info["Persistence"]["aof_rewrite_scheduled"] == "0"
	}, 20*time.Second, 20*time.Millisecond)
	server.Stop(t)
	started := make(chan struct{})
	go func() { defer close(started); server.Start(t) }()
	codes := map[checkpoint.Code]int{}
	require.Eventually(t, func() bool {
		got, err := b.store.Load(ctx, source)
		require.NotErrorIs(t, err, checkpoint.ErrNone)
		codes[checkpoint.CodeOf(err)]++
		return err == nil && got.Position.Pos == 77
	}, time.Minute, 5*time.Millisecond)
	<-started
	assert.Positive(t, codes[checkpoint.CodeLoading], "Redis was never seen loading: %v", codes)
}

// S83: a Redis that could not write its snapshot refuses to save, and goes on answering reads.
func TestMisconf(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "redis")
	require.NoError(t, os.Mkdir(dir, 0o700))
	b, _ := realBench(t, rig.Args("--dir", dir, "--appendonly", "no", "--save", "3600 1"))
	ctx := t.Context()
	epoch := lead(t, b, 5)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, b.raw.BgSave(ctx).Err())
	status := func(want string) func() bool {
		return func() bool {
			info, err := b.raw.InfoMap(ctx, "persistence").Result()
			return err == nil && info["Persistence"]["rdb_last_bgsave_status"] == want
		}
	}
	require.Eventually(t, status("err"), 10*time.Second, 10*time.Millisecond)

	err := b.store.Save(ctx, source, record(epoch, 6))
	require.Equal(t, checkpoint.CodeMisconf, checkpoint.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "look at its log and its disk")
	_, err = b.store.NextEpoch(ctx, source)
	require.Equal(t, checkpoint.CodeMisconf, checkpoint.CodeOf(err), "%v", err)
	got, err := b.store.Load(ctx, source)
	require.NoError(t, err)
	assert.EqualValues(t, 5, got.Position.Pos)
	report, err := b.store.Inspect(ctx)
	require.NoError(t, err)
	assert.Equal(t, "failure", level(report, checkpoint.CheckPersistence))
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b, server := realBench(t, rig.Own())
	ctx := t.Context()
	epoch := lead(t, b, 5)
	save := func() checkpoint.Code { return checkpoint.CodeOf(b.store.Save(ctx, source, record(epoch, 6))) }

	require.NoError(t, b.raw.ConfigSet(ctx, "maxmemory", "1").Err())
	assert.Equal(t, checkpoint.CodeMemory, save())
	require.NoError(t, b.raw.ConfigSet(ctx, "maxmemory", "0").Err())

	require.NoError(t, b.raw.ConfigSet(ctx, "min-replicas-to-write", "1").Err())
	assert.Equal(t, checkpoint.CodeReadOnly, save())
	require.NoError(t, b.raw.ConfigSet(ctx, "min-replicas-to-write", "0").Err())

	require.NoError(t, b.raw.SlaveOf(ctx, "127.0.0.1", "1").Err())
	assert.Equal(t, checkpoint.CodeReadOnly, save())
	report, err := b.store.Inspect(ctx)
	require.NoError(t, err)
	assert.Equal(t, "failure", level(report, checkpoint.CheckRole))
	require.NoError(t, b.raw.SlaveOf(ctx, "NO", "ONE").Err())

	require.NoError(t, b.raw.Do(ctx, "ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+ping").Err())
	for url, want := range map[string]checkpoint.Code{
		"redis://" + server.Addr:                       checkpoint.CodeAuth, // NOAUTH
		"redis://:wrong-pw@" + server.Addr:             checkpoint.CodeAuth, // WRONGPASS
		"redis://reader:pw@" + server.Addr:             checkpoint.CodeAuth, // NOPERM
		"redis://:redis-secret@" + server.Addr:         checkpoint.CodeNone,
		"redis://:redis-secret@" + server.Addr + "/99": checkpoint.CodeOther,
	} {
		s, err := checkpoint.Open(checkpoint.Config{URLs: []string{url}}, zerolog.Nop())
		require.NoError(t, err)
		err = s.Save(ctx, source, record(epoch, 7))
		assert.Equal(t, want, checkpoint.CodeOf(err), "%s: %v", url, err)
		if err != nil {
			assert.NotContains(t, err.Error(), "wrong-pw")
		}
		require.NoError(t, s.Close())
	}
	require.NoError(t, b.store.Save(ctx, source, record(epoch, 8)))
}

func TestLeaseIsLostWhenRedisStaysAway(t *testing.T) {
	t.Parallel()
	b, server := realBench(t, rig.Own())
	lease, err := b.store.AcquireLease(t.Context(), source, ttl)
	require.NoError(t, err)
	// It outlives more than one of its terms while Redis is there ...
	assert.Never(t, func() bool { return !lease.Valid() }, 2*ttl, 20*time.Millisecond)
	start := time.Now()
	server.Pause(t)
	// ... and ends on time, though nobody tells.
	waitLost(t, lease.Lost())
	assert.InDelta(t, ttl.Seconds(), time.Since(start).Seconds(), ttl.Seconds()*0.75)
	assert.False(t, lease.Valid())
	server.Resume(t)
	require.NoError(t, lease.Release(t.Context()))
}

// A dead holder's lease ends by itself, and one that is given back is taken at once.
func TestLeaseTakeover(t *testing.T) {
	t.Parallel()
	b, _ := realBench(t)
	ctx := t.Context()
	require.NoError(t, b.raw.Set(ctx, b.key("leader"), "dead#1", 700*time.Millisecond).Err())
	start := time.Now()
	lease, err := b.store.AcquireLease(ctx, source, time.Minute)
	require.NoError(t, err)
	assert.Less(t, time.Since(start), 3*time.Second)
	other := b.again("relay-2")
	type taken struct {
		lease *checkpoint.Lease
		err   error
	}
	got := make(chan taken, 1)
	waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	go func() { l, err := other.AcquireLease(waiting, source, time.Minute); got <- taken{l, err} }()
	require.NoError(t, lease.Release(ctx))
	second := <-got
	require.NoError(t, second.err)
	require.NoError(t, second.lease.Release(ctx))
}
