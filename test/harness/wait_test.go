package harness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/test/bubble"
)

func TestDwindlesAsLongAsItGetsLess(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		begun := time.Now()
		slowly := func(stuck int) func() int {
			return func() int { return max(stuck, 5-int(time.Since(begun)/(50*time.Second))) }
		}
		assert.True(t, Dwindles(time.Minute, slowly(0)), "one each 50 s")
		assert.Equal(t, 250*time.Second, time.Since(begun))
		begun = time.Now()
		assert.False(t, Dwindles(time.Minute, slowly(2)))
		assert.Equal(t, 150*time.Second+time.Minute, time.Since(begun))
	})
}
