package desk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/desk"
)

func TestUsageErrorShowsItsReason(t *testing.T) {
	t.Parallel()
	reason := errors.New("no such table")
	err := fmt.Errorf("source orders: %w", desk.Unusable(reason))
	require.EqualError(t, err, "source orders: no such table")
	require.ErrorIs(t, err, reason)
	_, ok := errors.AsType[*desk.UsageError](err)
	assert.True(t, ok)
}

func TestPositions(t *testing.T) {
	t.Parallel()
	var none *desk.Position
	assert.Equal(t, "none", none.String())
	at := position.Position{Server: "s", Flavor: "mysql", File: "binlog.000012", Pos: 4567, GTID: "a:1-7"}
	assert.Equal(t, at, desk.PositionOf(at).At())
	assert.Equal(t, "binlog.000012:4567", desk.PositionOf(at).String())
	at.File = ""
	assert.Equal(t, "a:1-7", desk.PositionOf(at).String(), "a set without a place")
}

func TestHistoryShowsWhatWasNotThere(t *testing.T) {
	t.Parallel()
	shown := desk.HistoryOf("orders", []checkpoint.Entry{{Event: checkpoint.EventReset}})
	assert.Nil(t, shown.Entries[0].Old)
	text, err := json.Marshal(desk.HistoryOf("orders", nil))
	require.NoError(t, err)
	assert.JSONEq(t, `{"source":"orders","entries":[]}`, string(text), "a list, even if it is empty")
}

func TestOnlyOneSource(t *testing.T) {
	t.Parallel()
	both := desk.Running{Sources: []desk.SourceState{{Name: "a"}, {Name: "b"}}}
	assert.Equal(t, []desk.SourceState{{Name: "b"}}, both.Only("b").Sources)
	assert.Len(t, both.Sources, 2, "the answer stays whole")
	assert.Empty(t, both.Only("c").Sources)
}
