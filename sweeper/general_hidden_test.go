package sweeper_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
)

// A topic is closed, and its drain begun, while a general pass waits for the stream; then the answer to the claim of
// its rows is lost. No query shows them while the claim lasts, so its younger rows have to wait.
func TestGeneralClaimThatIsLostHidesRowsOfAClosedTopic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.table.put("orders", outbox.Pending, 1)
	b.stream.onPassed = func() {
		b.gate.Close("orders", "", 0)
		b.table.setFail(errClosed)
	}
	_, err := b.Pass(t.Context())
	require.ErrorIs(t, err, errClosed)
	require.Contains(t, b.gate.done(), "later orders")
}
