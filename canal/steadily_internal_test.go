package canal

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/bubble"
)

func TestAMomentThatIsOverDoesNotEndTheEventInHand(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		moment, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		steady, done := steadily(moment)
		<-moment.Done()
		synctest.Wait()
		require.NoError(t, steady.Err())
		done()

		moment, cancel = context.WithTimeout(t.Context(), time.Second)
		steady, done = steadily(moment)
		defer done()
		cancel()
		synctest.Wait()
		require.ErrorIs(t, steady.Err(), context.Canceled)
	})
}
