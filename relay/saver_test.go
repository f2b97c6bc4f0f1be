package relay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/test/bubble"
)

// saverBench is a saver at the start position, with a store that the test breaks.
type saverBench struct {
	*saver
	store   *fakeCheckpoints
	tracker *Tracker
	log     *logBuffer
	lost    error
}

func newSaverBench(t *testing.T) *saverBench {
	t.Helper()
	cursor, err := canal.NewCursor(startPosition)
	require.NoError(t, err)
	b := &saverBench{store: &fakeCheckpoints{}, tracker: NewTracker(startPosition), log: &logBuffer{}}
	b.saver = &saver{
		savedBy: savedBy{source: "test", by: "me", epoch: 3}, store: b.store, tracker: b.tracker, cursor: cursor,
		saving:  saving{dirty: true},
		offsets: func() map[string]map[int32]int64 { return nil },
		check:   func() error { return b.lost },
		metrics: newMetrics(), trouble: newSaving(b.log.logger()),
	}
	return b
}

func (b *saverBench) start(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- b.run(ctx, time.Second) }()
	synctest.Wait()
	return ended
}

func TestSaverSavesAtOnceThenWhatMoved(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := newSaverBench(t)
		b.note = "recovered: purged"
		ended := b.start(ctx)
		require.Equal(t, 1, b.store.count(), "or a crash within the first interval would find nothing")
		require.Equal(t, checkpoint.Record{
			Position: startPosition, Epoch: 3, By: "me", SavedAt: time.Now(), Note: "recovered: purged",
		}, b.store.saved[0])
		txn := b.tracker.Begin(endAt(1), 1)
		b.tracker.Begin(endAt(2), 0)
		advance(t, time.Second)
		require.Equal(t, 1, b.store.count(), "nothing is safe yet")
		txn.Settle(1)
		advance(t, time.Second)
		require.Equal(t, 2, b.store.count())
		require.Equal(t, endAt(2).Pos, b.store.saved[1].Position.Pos)
		require.Empty(t, b.store.saved[1].Note, "the history has its line")
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestSaverRefreshesAnUnchangedPosition(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newSaverBench(t)
		b.start(t.Context())
		advance(t, refreshAfter-time.Second)
		require.Equal(t, 1, b.store.count())
		advance(t, time.Second)
		require.Equal(t, 2, b.store.count())
	})
}

func TestSaverGoesOnWithoutRedis(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newSaverBench(t)
		away := errors.New("connection refused")
		b.store.setFail(away)
		b.start(t.Context())
		b.tracker.Begin(endAt(1), 0)
		advance(t, time.Minute)
		pos, saved, err := b.state()
		require.Equal(t, endAt(1).Pos, pos.Pos, "the position goes on")
		require.Zero(t, saved)
		require.ErrorIs(t, err, away)
		require.Equal(t, 1, b.log.count("checkpoint not saved"), "an outage is told once")
		b.store.setFail(nil)
		advance(t, time.Second)
		require.Equal(t, endAt(1).Pos, b.store.saved[0].Position.Pos)
		require.Equal(t, 1, b.log.count("checkpoint saved again"))
		_, saved, err = b.state()
		require.NoError(t, err)
		require.Equal(t, time.Now(), saved)
		require.InDelta(t, 61, value(t, b.metrics.CheckpointSaves.WithLabelValues(words.SaveFailed)), 0)
		require.InDelta(t, 1, value(t, b.metrics.CheckpointSaves.WithLabelValues(words.SaveOK)), 0)
	})
}

func TestSaverEndsWhenFenced(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newSaverBench(t)
		ended := b.start(t.Context())
		b.store.setFail(checkpoint.ErrFenced)
		b.tracker.Begin(endAt(1), 0)
		require.ErrorIs(t, <-ended, checkpoint.ErrFenced)
		require.InDelta(t, 1, value(t, b.metrics.CheckpointSaves.WithLabelValues(words.SaveFenced)), 0)
	})
}

func TestSaverSavesNothingWithoutTheLock(t *testing.T) {
	t.Parallel()
	b := newSaverBench(t)
	b.lost = ErrLockLost
	require.ErrorIs(t, b.save(t.Context()), ErrLockLost)
	require.Zero(t, b.store.count())
}

func TestSaverEndsWhenThePositionsDoNotAddUp(t *testing.T) {
	t.Parallel()
	b := newSaverBench(t)
	end := endAt(1)
	end.Executed = "nonsense"
	b.tracker.Begin(end, 0)
	require.Error(t, b.save(t.Context()))
	require.Zero(t, b.store.count())
}

// Rows from before the start that nothing has recorded would be covered by the position, and forgotten.
func TestSaverWaitsUntilEverythingIsRecorded(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newSaverBench(t)
		b.held = true
		b.start(t.Context())
		b.tracker.Begin(endAt(1), 0)
		advance(t, time.Minute)
		require.Zero(t, b.store.count())
		pos, _, _ := b.state()
		require.Equal(t, endAt(1).Pos, pos.Pos)
		b.release()
		advance(t, time.Second)
		require.Equal(t, 1, b.store.count())
	})
}

// What is settled between the two looks is marked, so a replay skips it; the other way round, what is settled between
// them would be neither behind the position nor beyond the offsets.
func TestSaverReadsTheOffsetsAfterThePosition(t *testing.T) {
	t.Parallel()
	b := newSaverBench(t)
	txn := b.tracker.Begin(endAt(1), 1)
	b.offsets = func() map[string]map[int32]int64 {
		txn.Settle(1)
		return map[string]map[int32]int64{"orders": {0: 7}}
	}
	require.NoError(t, b.save(t.Context()))
	require.Equal(t, startPosition, b.store.saved[0].Position)
	require.Equal(t, map[string]map[int32]int64{"orders": {0: 7}}, b.store.saved[0].Offsets)
}
