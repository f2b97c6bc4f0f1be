package checkpoint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/checkpoint"
)

// lead makes the bench's store the leader with a saved position.
func lead(t *testing.T, b bench, pos uint64) int64 {
	t.Helper()
	epoch, err := b.store.NextEpoch(t.Context(), source)
	require.NoError(t, err)
	rec := record(epoch, pos)
	rec.Offsets = map[string]map[int32]int64{"orders": {0: 42}}
	require.NoError(t, b.store.Save(t.Context(), source, rec))
	return epoch
}

func resetFencesTheLeader(t *testing.T, b bench) {
	ctx := t.Context()
	epoch := lead(t, b, 100)
	to := &checkpoint.Record{Position: at("binlog.000009", 4)}
	require.NoError(t, b.again("cli").Reset(ctx, source, checkpoint.Change{Who: operator, Event: checkpoint.EventSet, To: to}))
	require.ErrorIs(t, b.store.Save(ctx, source, record(epoch, 200)), checkpoint.ErrFenced)

	got, err := b.store.Load(ctx, source)
	require.NoError(t, err)
	assert.Equal(t, to.Position, got.Position)
	assert.Equal(t, "ann@desk", got.By)
	assert.Equal(t, epoch+1, got.Epoch)
	assert.Empty(t, got.Offsets)

	history, err := b.store.History(ctx, source, 1)
	require.NoError(t, err)
	require.Len(t, history, 1)
	entry := history[0]
	assert.Equal(t, checkpoint.EventSet, entry.Event)
	who := checkpoint.Who{User: entry.User, Host: entry.Host, Reason: entry.Reason}
	assert.Equal(t, operator, who)
	assert.EqualValues(t, 100, entry.Old.Position.Pos)
	assert.EqualValues(t, 42, entry.Old.Offsets["orders"][0])
	assert.Equal(t, to.Position, entry.New.Position)
	assert.False(t, entry.At.IsZero())

	// Stepping down and leading again goes on from there.
	again, err := b.store.NextEpoch(ctx, source)
	require.NoError(t, err)
	assert.Equal(t, epoch+2, again)
	require.NoError(t, b.store.Save(ctx, source, record(again, 300)))
}

func removalIsNoLoss(t *testing.T, b bench) {
	ctx := t.Context()
	epoch := lead(t, b, 100)
	require.NoError(t, b.store.Reset(ctx, source, checkpoint.Change{Who: operator}))
	_, err := b.store.Load(ctx, source)
	require.ErrorIs(t, err, checkpoint.ErrNone)
	require.NotErrorIs(t, err, checkpoint.ErrLost)
	require.ErrorContains(t, err, "ann@desk")
	require.ErrorIs(t, b.store.Save(ctx, source, record(epoch, 200)), checkpoint.ErrFenced)
}

func undoGoesBackAndForth(t *testing.T, b bench) {
	ctx := t.Context()
	epoch := lead(t, b, 100)
	before, err := b.store.Load(ctx, source)
	require.NoError(t, err)
	require.NoError(t, b.store.Reset(ctx, source, checkpoint.Change{Who: operator}))
	require.NoError(t, b.store.Undo(ctx, source, operator))
	got, err := b.store.Load(ctx, source)
	require.NoError(t, err)
	assert.Equal(t, before.Position, got.Position)
	assert.Equal(t, before.Offsets, got.Offsets)
	assert.Equal(t, before.SavedAt, got.SavedAt, "the offsets are looked up by it, so it stays that of the position")
	assert.Equal(t, epoch+2, got.Epoch)
	assert.Equal(t, "ann@desk", got.By)

	// A leader's save in between isn't what is undone.
	next, err := b.store.NextEpoch(ctx, source)
	require.NoError(t, err)
	require.NoError(t, b.store.Save(ctx, source, record(next, 500)))
	require.NoError(t, b.store.Undo(ctx, source, operator))
	_, err = b.store.Load(ctx, source)
	require.ErrorIs(t, err, checkpoint.ErrNone)
	require.NoError(t, b.store.Undo(ctx, source, operator))
	got, err = b.store.Load(ctx, source)
	require.NoError(t, err)
	assert.EqualValues(t, 500, got.Position.Pos, "what the second undo replaced")
}

func undoOfNothing(t *testing.T, b bench) {
	require.ErrorIs(t, b.store.Undo(t.Context(), source, operator), checkpoint.ErrNothingToUndo)
	lead(t, b, 1)
	require.ErrorIs(t, b.store.Undo(t.Context(), source, operator), checkpoint.ErrNothingToUndo)
	require.ErrorContains(t, b.store.Undo(t.Context(), source, checkpoint.Who{}), "user and host")
	require.ErrorContains(t, b.store.Reset(t.Context(), source, checkpoint.Change{}), "user and host")
	require.ErrorContains(t, b.store.Reset(t.Context(), source, checkpoint.Change{Who: operator, Event: "boom"}), "set or reset")
	require.ErrorContains(t,
		b.store.Reset(t.Context(), source, checkpoint.Change{Who: operator, To: &checkpoint.Record{}}), "position is empty")
}

func historyHasWhatMatters(t *testing.T, b bench) {
	ctx := t.Context()
	epoch := lead(t, b, 100)
	for pos := range uint64(20) {
		require.NoError(t, b.store.Save(ctx, source, record(epoch, 101+pos)))
	}
	noted := record(epoch, 200)
	noted.Note = "recovered: purged"
	require.NoError(t, b.store.Save(ctx, source, noted))

	history, err := b.store.History(ctx, source, 100)
	require.NoError(t, err)
	require.Len(t, history, 2)
	assert.Equal(t, checkpoint.EventRecovery, history[0].Event)
	assert.Equal(t, "recovered: purged", history[0].Reason)
	assert.EqualValues(t, 120, history[0].Old.Position.Pos)
	assert.EqualValues(t, 200, history[0].New.Position.Pos)
	assert.Equal(t, checkpoint.EventLeader, history[1].Event)
	assert.Equal(t, "relay-1", history[1].By)
	assert.False(t, history[1].Old.Present)
	assert.True(t, history[1].New.Present)
	assert.Empty(t, history[1].New.Problem)
}

func historyIsCapped(t *testing.T, b bench) {
	ctx := t.Context()
	epoch := lead(t, b, 100)
	for pos := range uint64(300) {
		noted := record(epoch, 101+pos)
		noted.Note = "again"
		require.NoError(t, b.store.Save(ctx, source, noted))
	}
	n, err := b.raw.XLen(ctx, b.key("history")).Result()
	require.NoError(t, err)
	assert.EqualValues(t, 256, n)
	history, err := b.store.History(ctx, source, 3)
	require.NoError(t, err)
	require.Len(t, history, 3)
	assert.EqualValues(t, 400, history[0].New.Position.Pos)
}
