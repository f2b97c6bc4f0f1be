package checkpoint_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ttl is long enough for a slow machine and short enough for a test.
const ttl = 1500 * time.Millisecond

func isLost(lost <-chan struct{}) bool {
	select {
	case <-lost:
		return true
	default:
		return false
	}
}

// waitLost waits for the loss, no longer than a lease can last.
func waitLost(t *testing.T, lost <-chan struct{}) {
	t.Helper()
	select {
	case <-lost:
	case <-time.After(2 * ttl):
		require.FailNow(t, "the lease was not lost")
	}
}

func leaseHasOneHolder(t *testing.T, b bench) {
	ctx := t.Context()
	first, err := b.store.AcquireLease(ctx, source, ttl)
	require.NoError(t, err)
	assert.True(t, first.Valid())
	holder, held, err := b.store.LeaseHolder(ctx, source)
	require.NoError(t, err)
	assert.True(t, held)
	assert.Equal(t, "relay-1", holder)

	other := b.again("relay-2")
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = other.AcquireLease(short, source, ttl)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, first.Release(ctx))
	assert.False(t, first.Valid())
	assert.False(t, isLost(first.Lost()), "given back is not lost")
	require.NoError(t, first.Release(ctx), "again does no harm")
	_, held, err = b.store.LeaseHolder(ctx, source)
	require.NoError(t, err)
	assert.False(t, held)

	second, err := other.AcquireLease(ctx, source, ttl)
	require.NoError(t, err)
	require.NoError(t, second.Release(ctx))
}

func leaseIsLostToAnother(t *testing.T, b bench) {
	ctx := t.Context()
	lease, err := b.store.AcquireLease(ctx, source, ttl)
	require.NoError(t, err)
	require.NoError(t, b.raw.Set(ctx, b.key("leader"), "thief#1", time.Minute).Err())
	waitLost(t, lease.Lost())
	assert.False(t, lease.Valid())
	require.NoError(t, lease.Release(ctx))
	assert.Equal(t, "thief#1", b.raw.Get(ctx, b.key("leader")).Val(), "another's lease is left alone")
}

func leaseOfAnotherIsSpared(t *testing.T, b bench) {
	ctx := t.Context()
	lease, err := b.store.AcquireLease(ctx, source, time.Minute)
	require.NoError(t, err)
	require.NoError(t, b.raw.Set(ctx, b.key("leader"), "thief#2", time.Minute).Err())
	require.NoError(t, lease.Release(ctx))
	assert.Equal(t, "thief#2", b.raw.Get(ctx, b.key("leader")).Val())
}

func leaseWithoutAnEnd(t *testing.T, b bench) {
	ctx := t.Context()
	require.NoError(t, b.raw.Set(ctx, b.key("leader"), "someone", 0).Err())
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := b.store.AcquireLease(short, source, ttl)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	left, err := b.raw.PTTL(ctx, b.key("leader")).Result()
	require.NoError(t, err)
	assert.Positive(t, left, "a lease for ever would keep everyone out")
}

func leaseSurvivesLostData(t *testing.T, b bench) {
	ctx := t.Context()
	lease, err := b.store.AcquireLease(ctx, source, ttl)
	require.NoError(t, err)
	require.NoError(t, b.raw.Del(ctx, b.key("leader")).Err())
	assert.Eventually(t, func() bool {
		_, held, err := b.store.LeaseHolder(ctx, source)
		return err == nil && held
	}, ttl, 10*time.Millisecond)
	assert.True(t, lease.Valid())
	require.NoError(t, lease.Release(ctx))
}

func leaseRefusesShortTimes(t *testing.T, b bench) {
	_, err := b.store.AcquireLease(t.Context(), source, time.Millisecond)
	require.ErrorContains(t, err, "must be at least 300ms")
	_, err = b.store.AcquireLease(t.Context(), "a b", time.Second)
	require.ErrorContains(t, err, "redis key")
}
