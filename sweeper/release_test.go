package sweeper_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/sweeper"
)

// releaseBench has an open topic with rows of a key that waits, parked, of which something may be sendable.
func releaseBench(t *testing.T, parked ...uint64) *bench {
	t.Helper()
	b := newBench(t)
	b.gate.states["orders"] = "open"
	b.keys.waiting, b.keys.holds, b.keys.after = []string{"k"}, true, true
	b.keys.ready = map[uint64]bool{1: true}
	b.table.put("orders", outbox.Pending, parked...)
	for _, id := range parked {
		b.table.rows[id].parked = 1
	}
	return b
}

func TestDueRowsOfAWaitingKeyAreParked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.gate.states["orders"] = "open"
	b.keys.waiting = []string{"k"}
	b.table.put("orders", outbox.Pending, 1, 2)
	b.table.put("orders", outbox.Failed, 3)
	require.Equal(t, sweeper.Result{Parked: 3, More: true}, b.pass(t))
	require.Empty(t, b.broker.published())
	require.Equal(t, []string{"claim m1 m2 m3", "park m1", "park m2", "park m3"}, b.table.done())
	require.Equal(t, sweeper.Result{}, b.pass(t), "no pass sees them again")
}

func TestReleaseSendsByIDAndHandsTheKeyBack(t *testing.T) {
	t.Parallel()
	b := releaseBench(t, 5, 4, 6, 7)
	require.Equal(t, 4, b.pass(t).Sent)
	require.Equal(t, []string{"~m4", "m5", "m6", "~m7"}, b.broker.published(), "the first of each batch goes alone")
	require.Equal(t, []string{"hold true", "hand back", "looked at orders blocked false"}, b.keys.journal)
}

func TestReleaseSendsEachRetriedLetterAlone(t *testing.T) {
	t.Parallel()
	b := releaseBench(t, 1, 2, 3)
	b.keys.alone = []uint64{2}
	require.Equal(t, 3, b.pass(t).Sent)
	require.Equal(t, []string{"~m1", "~m2", "m3"}, b.broker.published())
}

func TestLetterThatDiesAgainHoldsWhatIsBehindIt(t *testing.T) {
	t.Parallel()
	b := releaseBench(t, 1, 2, 3)
	b.keys.alone = []uint64{2}
	b.broker.refuse = refuse(errNever, "m2")
	require.Equal(t, sweeper.Result{Sent: 1, Dead: 1, Parked: 1}, b.pass(t))
	require.Equal(t, []string{"~m1"}, b.broker.published())
	require.Equal(t, []string{"claim parked m1 m2 m3", "sent m1", "dead m2", "park m3"}, b.table.done())
	require.Equal(t, []string{"died m2", "buried m2 true", "looked at orders blocked false"}, b.keys.journal)
	require.Equal(t, "open", b.gate.state("orders"), "other keys of the topic flow on")
}

func TestReleaseStopsBeforeADeadLetter(t *testing.T) {
	t.Parallel()
	b := releaseBench(t, 1, 3)
	b.keys.dead = []uint64{2}
	require.Equal(t, 1, b.pass(t).Sent)
	require.Equal(t, []string{"~m1"}, b.broker.published())
	require.Equal(t, []string{"looked at orders blocked true"}, b.keys.journal)
}

func TestReleaseWaitsForItsTopic(t *testing.T) {
	t.Parallel()
	b := releaseBench(t, 1)
	b.gate.states["orders"] = "probing"
	require.Zero(t, b.pass(t))
	require.Empty(t, b.broker.published())
	require.Equal(t, []string{"looked at orders blocked false"}, b.keys.journal)
}

func TestReleaseWaitsForTheStream(t *testing.T) {
	t.Parallel()
	b := releaseBench(t, 1)
	b.stream.err = sweeper.ErrBehind
	_, err := b.Pass(t.Context())
	require.ErrorIs(t, err, sweeper.ErrBehind)
	require.Empty(t, b.broker.published())
}

// Whatever keeps one key from being released, the others are not forgotten: nothing else would tell of them again.
func TestKeysBehindAFailureAreReleasedLater(t *testing.T) {
	t.Parallel()
	b := releaseBench(t, 1)
	b.keys.ready[2], b.keys.ready[3] = true, true
	b.stream.err = sweeper.ErrBehind
	_, err := b.Pass(t.Context())
	require.ErrorIs(t, err, sweeper.ErrBehind)
	require.Equal(t, []string{"looked at orders blocked false"}, b.keys.journal)
	require.Equal(t, []order.Name{{Key: 2}, {Key: 3}}, b.keys.release())
}

func TestRefusedReleaseIsParkedAgain(t *testing.T) {
	t.Parallel()
	b := releaseBench(t, 1, 2)
	b.broker.refuse = refuse(errRefused, "m1")
	require.Equal(t, sweeper.Result{Failed: 1, Parked: 1}, b.pass(t))
	require.Equal(t, []string{"claim parked m1 m2", "park m2", "failed m1"}, b.table.done())
	require.Equal(t, "closed", b.gate.state("orders"))
	require.Equal(t, 1, b.keys.spent)
}

func TestReleaseWithARowThatSomebodyElseHolds(t *testing.T) {
	t.Parallel()
	b := releaseBench(t, 1, 2)
	b.table.locked[1] = true
	require.Zero(t, b.pass(t).Sent)
	require.Empty(t, b.broker.published())
	require.Equal(t, []string{"claim parked m2", "park m2"}, b.table.done())
}

// A younger row of the key is parked before an older one, which its topic has held: the older one goes first, and one that
// comes behind both waits for its turn.
func TestRowThatIsParkedWhileTheStreamPasses(t *testing.T) {
	t.Parallel()
	b := releaseBench(t, 6)
	b.stream.onPassed = func() {
		b.stream.onPassed = nil
		b.table.put("orders", outbox.Pending, 4, 8)
		b.table.rows[4].parked, b.table.rows[8].parked = 1, 1
	}
	require.Equal(t, 3, b.pass(t).Sent)
	require.Equal(t, []string{"~m4", "m6", "~m8"}, b.broker.published())
}
