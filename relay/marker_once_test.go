package relay

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

// deafRows write failures, but their answers are lost for a while.
type deafRows struct {
	*fakeRows
	lost     int
	memories [][]*store.Memory // of each call
}

func (r *deafRows) MarkFailed(_ context.Context, failures []store.Failure) ([]outbox.Ref, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	memories := make([]*store.Memory, len(failures))
	for i := range failures {
		memories[i] = failures[i].Memory
	}
	r.memories = append(r.memories, memories)
	if r.lost--; r.lost >= 0 {
		return nil, store.ErrUnreachable
	}
	return nil, nil
}

// A failure whose first write was done, but not answered, must not count again: the store tells by the memory, so
// that has to be the same in each call.
func TestMarkerRepeatsAFailureWithItsMemory(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := startMarker(t.Context())
		rows := &deafRows{fakeRows: b.rows, lost: 2}
		b.marker.rows = rows
		b.give(outcomeFailed, 1, 3)
		advance(t, time.Minute)
		require.Len(t, rows.memories, 3)
		first := rows.memories[0]
		require.NotContains(t, first, (*store.Memory)(nil))
		require.Len(t, slices.Compact(slices.Clone(first)), 3, "each has its own")
		for _, again := range rows.memories[1:] {
			for i := range again {
				require.Same(t, first[i], again[i])
			}
		}
		require.Equal(t, numbered(1, 3), b.names())

		b.give(outcomeFailed, 1, 1)
		advance(t, time.Minute)
		require.NotSame(t, first[0], rows.memories[3][0], "another failure of the row counts")
	})
}

// The same for rows of a table that is gone, which wait on a list of their own.
func TestMarkerRepeatsAParkedFailureWithItsMemory(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := startMarker(t.Context())
		rows := &vanishedRows{deafRows: deafRows{fakeRows: b.rows}, gone: 3}
		b.marker.rows = rows
		b.give(outcomeFailed, 1, 1)
		advance(t, time.Minute)
		require.Equal(t, numbered(1, 1), b.names())
		require.Len(t, rows.memories, 4)
		for _, again := range rows.memories {
			require.Same(t, rows.memories[0][0], again[0])
		}
	})
}

// vanishedRows lose their table for some calls.
type vanishedRows struct {
	deafRows
	gone int
}

func (r *vanishedRows) MarkFailed(ctx context.Context, failures []store.Failure) ([]outbox.Ref, error) {
	dead, err := r.deafRows.MarkFailed(ctx, failures)
	if r.gone--; r.gone >= 0 {
		return nil, store.ErrGone
	}
	return dead, err
}
