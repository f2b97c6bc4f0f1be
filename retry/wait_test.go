package retry_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/test/bubble"
)

func TestWaitLastsAsLongAsAsked(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, retry.Wait(t.Context(), 5*time.Minute))
		assert.Equal(t, 5*time.Minute, time.Since(start))
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, retry.Wait(ctx, time.Hour), context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(start))
	})
}

func TestWaitOfNothingReturnsAtOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, retry.Wait(t.Context(), 0))
		require.NoError(t, retry.Wait(t.Context(), -time.Second))
		assert.Zero(t, time.Since(start))
	})
}

func TestWaitOfNothingStillSeesAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, retry.Wait(ctx, 0), context.Canceled)
	require.ErrorIs(t, retry.Wait(ctx, time.Hour), context.Canceled)
}
