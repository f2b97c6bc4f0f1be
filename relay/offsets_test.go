package relay

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

type byPartition = map[string]map[int32]int64

// acked queues the mark of a message that Kafka has at an offset.
func markAcked(m *marker, o *offsets, topic string, partition int32, offset int64) {
	o.acked(topic, partition, offset)
	m.add(verdict{it: &item{place: place{dest: topic, partition: partition, offset: offset}}})
}

func idleMarker() *marker {
	return newMarker(&fakeRows{}, markerConfig{batch: 10}, nil, zerolog.Nop())
}

func TestOffsetsStartFromTheCheckpoint(t *testing.T) {
	t.Parallel()
	loaded := byPartition{"orders": {0: 5, 1: 9}}
	o := newOffsets(loaded)
	o.acked("orders", 0, 10)
	o.acked("users", 3, 0)
	require.Equal(t, byPartition{"orders": {0: 11, 1: 9}, "users": {3: 1}}, o.snapshot(idleMarker()))
	require.Equal(t, byPartition{"orders": {0: 5, 1: 9}}, loaded, "the caller's maps are left alone")
}

func TestSnapshotIsTheLowestThatIsNotSettled(t *testing.T) {
	t.Parallel()
	m, o := idleMarker(), newOffsets(nil)
	o.acked("orders", 0, 3) // settled already
	for _, offset := range []int64{5, 4, 6} {
		markAcked(m, o, "orders", 0, offset)
	}
	markAcked(m, o, "orders", 1, 100)
	require.Equal(t, byPartition{"orders": {0: 4, 1: 100}}, o.snapshot(m))
	// What is being written is not settled either.
	m.mu.Lock()
	batch := m.cut()
	require.Len(t, batch, 4)
	require.Equal(t, byPartition{"orders": {0: 4, 1: 100}}, o.snapshot(m))
	m.writing = nil
	require.Equal(t, byPartition{"orders": {0: 7, 1: 101}}, o.snapshot(m))
}

func TestSnapshotCountsOnlyWhatIsInKafka(t *testing.T) {
	t.Parallel()
	m, o := idleMarker(), newOffsets(byPartition{"orders": {0: 8}})
	m.add(verdict{it: &item{place: place{dest: "orders"}}, outcome: outcomeDeferred})
	m.add(verdict{it: &item{place: place{dest: "orders"}}, outcome: outcomeFailed})
	m.add(verdict{it: &item{place: place{dest: "orders"}}, outcome: outcomeDead})
	m.add(verdict{it: &item{}, outcome: outcomeSent}) // found in the tail: it lies before
	require.Equal(t, byPartition{"orders": {0: 8}}, o.snapshot(m))
}

func TestSweptMessagesHoldTheOffsetUntilTheyAreMarked(t *testing.T) {
	t.Parallel()
	m, o := idleMarker(), newOffsets(nil)
	for offset := range int64(3) {
		o.sweptAcked("orders", 0, 20+offset)
	}
	o.acked("orders", 0, 30)
	require.Equal(t, byPartition{"orders": {0: 20}}, o.snapshot(m))
	o.sweptMarked()
	require.Equal(t, byPartition{"orders": {0: 31}}, o.snapshot(m))
}

func TestSnapshotIsACopy(t *testing.T) {
	t.Parallel()
	m, o := idleMarker(), newOffsets(nil)
	o.acked("orders", 0, 1)
	first := o.snapshot(m)
	o.acked("orders", 0, 2)
	require.Equal(t, byPartition{"orders": {0: 2}}, first)
}
