package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
)

// deadOf is what a reading of the table finds.
func deadOf(ids ...uint64) map[outbox.Table][]uint64 {
	return map[outbox.Table][]uint64{refOf(1).Table: ids}
}

func TestRoundsFindNewLettersAndThoseDecidedAbout(t *testing.T) {
	t.Parallel()
	s := order.NewLines[message](order.Config{Hold: true})
	line := order.Name{Topic: "orders", Key: theKey}
	s.BeginRound()
	unknown, gone := s.Compare(deadOf(2, 3))
	require.Equal(t, deadOf(2, 3), unknown)
	require.Empty(t, gone)
	for _, id := range []uint64{2, 3} {
		s.Died(refOf(id), line)
		s.Buried(refOf(id), true)
	}
	s.BeginRound()
	unknown, gone = s.Compare(deadOf(2, 3))
	require.Empty(t, unknown)
	require.Empty(t, gone)
	require.Equal(t, []order.Letter{{Ref: refOf(2), Line: line}, {Ref: refOf(3), Line: line}}, s.Letters())
	s.BeginRound()
	_, gone = s.Compare(deadOf(3))
	require.Equal(t, []outbox.Ref{refOf(2)}, gone)
	require.EqualValues(t, theKey, s.KeyOf(refOf(2)))
	s.Decided(refOf(2), true)
	require.Zero(t, s.KeyOf(refOf(2)))
	require.Equal(t, order.GoesAlone, s.TurnOf(theKey, refOf(2)))
	require.Equal(t, order.Behind, s.TurnOf(theKey, refOf(4)))
}

// What the table was told after a reading began need not be in it, and a table that could not be read says nothing.
func TestRoundSaysNothingOfLaterDeaths(t *testing.T) {
	t.Parallel()
	s := order.NewLines[message](order.Config{Hold: true})
	s.BeginRound()
	s.Died(refOf(2), order.Name{Topic: "orders", Key: theKey})
	_, gone := s.Compare(deadOf())
	require.Empty(t, gone, "the table was not told")
	s.Buried(refOf(2), true)
	_, gone = s.Compare(deadOf())
	require.Empty(t, gone, "it was told after the reading began")
	s.BeginRound()
	_, gone = s.Compare(nil)
	require.Empty(t, gone, "the table was not read")
	_, gone = s.Compare(deadOf())
	require.Equal(t, []outbox.Ref{refOf(2)}, gone)
}

// An id comes again after a TRUNCATE, for a message of another key.
func TestLetterWhoseIDIsAnothersNow(t *testing.T) {
	t.Parallel()
	s := order.NewLines[message](order.Config{Hold: true})
	s.Died(refOf(2), order.Name{Topic: "orders", Key: theKey})
	s.Died(refOf(2), order.Name{Topic: "orders", Key: theKey + 1})
	require.Equal(t, order.Goes, s.TurnOf(theKey, refOf(3)))
	require.Equal(t, order.Behind, s.TurnOf(theKey+1, refOf(3)))
}

// Parked rows are found of which nobody knows: their key waits until somebody has looked.
func TestParkedRowsThatNobodyKnowsOf(t *testing.T) {
	t.Parallel()
	s := order.NewLines[message](order.Config{})
	s.Parked(theKey)
	require.Equal(t, 1, s.Keys())
	require.Equal(t, []order.Name{{Key: theKey}}, s.Work(scriptStart).Release)
	name := order.Name{Topic: "orders", Key: theKey}
	s.Topic("orders").Close("gone", scriptStart)
	s.At(name).Report(order.Outcome{Kind: order.Looked}, scriptStart)
	require.Empty(t, s.Work(scriptStart).Release, "its topic takes nothing")
	require.Nil(t, s.At(order.Name{Key: theKey + 1}))
}
