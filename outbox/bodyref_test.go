package outbox_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
)

func TestBodyRefIsReadAsItIsWritten(t *testing.T) {
	for _, ref := range []outbox.BodyRef{
		{Topic: "orders.staged", Partition: 0, Offset: 0},
		{Topic: "a-b_c", Partition: math.MaxInt32, Offset: math.MaxInt64},
	} {
		read, err := outbox.ParseBodyRef(ref.String())
		require.NoError(t, err)
		assert.Equal(t, ref, read)
	}
}

func TestBodyRefRefusesAnythingElse(t *testing.T) {
	for _, text := range []string{"", "t", "t/1", "/1/2", "t/-1/2", "t/1/-2", "t/1/2/3", "t/x/2", "t/1/x", "t/2147483648/1", "t/1/9223372036854775808"} {
		_, err := outbox.ParseBodyRef(text)
		assert.ErrorContains(t, err, "topic/partition/offset", text)
	}
}
