package inbox_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/outbox"
)

// keeper keeps what is emitted.
type keeper struct{ messages []outbox.Message }

func (k *keeper) PutAll(_ context.Context, _ outbox.Execer, messages []outbox.Message) ([]outbox.Receipt, error) {
	k.messages = append(k.messages, messages...)
	receipts := make([]outbox.Receipt, len(messages))
	for i, m := range messages {
		receipts[i].ID = m.ID
	}
	return receipts, nil
}

func emitter(t *testing.T, group string) (*inbox.Inbox, *keeper) {
	t.Helper()
	kept := &keeper{}
	in, err := inbox.New(closed(t), inbox.Config{Group: group, Outbox: kept})
	require.NoError(t, err)
	return in, kept
}

// ids emits messages of these topics and keys, each in a call of its own, and returns their ids.
func ids(t *testing.T, group, cause string, of ...[2]string) []string {
	t.Helper()
	in, kept := emitter(t, group)
	ctx := in.Caused(t.Context(), cause)
	for _, m := range of {
		_, err := in.Emit(ctx, nil, outbox.Message{Topic: m[0], Key: m[1], Body: 1})
		require.NoError(t, err)
	}
	var all []string
	for _, m := range kept.messages {
		all = append(all, m.ID)
	}
	return all
}

func TestEmittedIDsRepeatAndAreNeverShared(t *testing.T) {
	t.Parallel()
	of := [][2]string{{"a", "k"}, {"a", "k"}, {"a", ""}, {"b", "k"}, {"", "ak"}, {"ak", ""}}
	first := ids(t, "points", "m-1", of...)
	assert.Equal(t, first, ids(t, "points", "m-1", of...), "the same handling emits the same ids")
	all := append(slices.Clone(first), ids(t, "points", "m-2", of...)...)
	all = append(all, ids(t, "pointsm", "-1", of...)...)
	seen := map[string]bool{}
	for _, id := range all {
		assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
		assert.False(t, seen[id], id)
		seen[id] = true
	}
	assert.Len(t, seen, 3*len(of))
}

// The order in which a handler walks over a map must not change which message has which id.
func TestEmittedIDsDoNotDependOnTheOrderOfOtherKeys(t *testing.T) {
	t.Parallel()
	there := ids(t, "points", "m-1", [2]string{"a", "x"}, [2]string{"a", "y"})
	back := ids(t, "points", "m-1", [2]string{"a", "y"}, [2]string{"a", "x"})
	slices.Reverse(back)
	assert.Equal(t, there, back)
}

func TestEmitNamesTheCauseAndLeavesTheCallersMessageAlone(t *testing.T) {
	t.Parallel()
	in, kept := emitter(t, "points")
	headers := map[string]string{"tenant": "7"}
	receipts, err := in.Emit(in.Caused(t.Context(), "m-1"), nil, outbox.Message{ID: "own-id", Topic: "a", Headers: headers}, outbox.Message{Topic: "a"})
	require.NoError(t, err)
	assert.Equal(t, "own-id", receipts[0].ID)
	assert.Equal(t, map[string]string{"tenant": "7", "causation_id": "m-1"}, kept.messages[0].Headers)
	assert.Equal(t, map[string]string{"causation_id": "m-1"}, kept.messages[1].Headers)
	assert.Equal(t, map[string]string{"tenant": "7"}, headers)
}

func TestEmitWantsACauseAndAnOutbox(t *testing.T) {
	t.Parallel()
	in, _ := emitter(t, "points")
	_, err := in.Emit(t.Context(), nil, outbox.Message{})
	require.ErrorIs(t, err, inbox.ErrNoCause)
	in, err = inbox.New(closed(t), inbox.Config{Group: "points"})
	require.NoError(t, err)
	_, err = in.Emit(in.Caused(t.Context(), "m-1"), nil, outbox.Message{})
	require.ErrorContains(t, err, "set Config.Outbox")
}
