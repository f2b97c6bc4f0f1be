package relay

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

func topicOfRow(row *outbox.Row) string { return "to-" + row.Topic }

func TestReplayJudges(t *testing.T) {
	t.Parallel()
	in := knowing("to-orders", "m1")
	elsewhere := knowing("orders", "m1")
	for _, tt := range []struct {
		name string
		row  store.Found
		ok   bool
		tail *tail
		want replayVerdict
	}{
		{"Pending", store.Found{Status: outbox.Pending}, true, nil, replayUnknown},
		{"PendingInKafka", store.Found{Status: outbox.Pending}, true, in, replayInKafka},
		{"PendingInAnotherTopic", store.Found{Status: outbox.Pending}, true, elsewhere, replayUnknown},
		{"Deferred", store.Found{Status: outbox.Pending, HasNextRetry: true}, true, nil, replaySweepers},
		{"DeferredInKafka", store.Found{Status: outbox.Pending, HasNextRetry: true}, true, in, replaySweepers},
		{"Failed", store.Found{Status: outbox.Failed, HasNextRetry: true}, true, in, replaySweepers},
		{"Sent", store.Found{Status: outbox.Sent}, true, nil, replaySettled},
		{"Consumed", store.Found{Status: outbox.Consumed}, true, nil, replaySettled},
		{"Dead", store.Found{Status: outbox.Dead}, true, in, replaySettled},
		{"Discarded", store.Found{Status: outbox.Discarded}, true, nil, replaySettled},
		{"Foreign", store.Found{Status: outbox.Foreign}, true, nil, replaySettled},
		{"NotReadable", store.Found{}, false, nil, replayUnknown},
		{"NotReadableInKafka", store.Found{}, false, in, replayInKafka},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &replay{tail: tt.tail, topicOf: topicOfRow}
			require.Equal(t, tt.want, r.judge(&candidate{row: rowOf(1, "orders", "k")}, tt.row, tt.ok))
		})
	}
}

func TestTailIsForgotten(t *testing.T) {
	t.Parallel()
	known := knowing("orders", "m1")
	require.True(t, known.has("orders", "m1"))
	known.forget()
	require.False(t, known.has("orders", "m1"))
	var none *tail
	none.forget()
	require.False(t, none.has("orders", "m1"))
}

func TestReplayWindowEnds(t *testing.T) {
	t.Parallel()
	r := &replay{until: position.Position{File: "binlog.000002", Pos: 500}, log: zerolog.Nop()}
	require.False(t, r.endsAt(position.End{File: "binlog.000001", Pos: 1 << 40}))
	require.False(t, r.endsAt(position.End{File: "binlog.000002", Pos: 499}))
	require.True(t, r.endsAt(position.End{File: "binlog.000002", Pos: 500}))
	require.True(t, r.endsAt(position.End{File: "binlog.000003", Pos: 4}))
	require.True(t, r.endsAt(position.End{File: "other.000001", Pos: 4}), "another server's binlog: nothing of the window follows")
	r.finish(endAt(1))
	require.False(t, r.endsAt(position.End{File: "binlog.000003", Pos: 4}), "it ends once")
}

// TestReplayWindowStaysOpenWhileTheReplicaLags: where the window ends is told once the replica has caught up.
func TestReplayWindowStaysOpenWhileTheReplicaLags(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		r := &replay{waits: true, log: zerolog.Nop()}
		tracker := NewTracker(startPosition)
		require.False(t, r.endsAt(endAt(1)))
		require.False(t, r.settled(tracker))
		reader := &ending{end: position.Position{File: endAt(2).File, Pos: endAt(2).Pos}}
		upstream := &laggingUpstream{until: time.Now().Add(time.Minute)}
		s := &session{log: zerolog.Nop(), streaming: streaming{pump: &pump{replay: r}, reader: reader, upstream: upstream}}
		require.NoError(t, s.untilApplied(t.Context(), upstream))
		require.False(t, time.Now().Before(upstream.until))
		require.False(t, r.endsAt(endAt(1)))
		require.False(t, r.settled(tracker))
		require.True(t, r.endsAt(endAt(2)))
		require.NoError(t, (&session{streaming: streaming{pump: &pump{replay: &replay{}}}}).untilApplied(t.Context(), nil), "nothing to wait for")
	})
}

// ending is a reader that knows its binlog's end.
type ending struct {
	Reader
	end position.Position
}

func (r *ending) End(context.Context) (position.Position, error) { return r.end, nil }

// laggingUpstream can't say how far the replica is until it has caught up.
type laggingUpstream struct{ until time.Time }

func (u *laggingUpstream) Applied(context.Context) error {
	if time.Now().Before(u.until) {
		return canal.ErrNotReplicating
	}
	return nil
}

func TestReplayGathers(t *testing.T) {
	t.Parallel()
	r := &replay{}
	for range gatherRows - 1 {
		require.False(t, r.add(candidate{row: rowOf(1, "orders", "k")}))
	}
	require.True(t, r.add(candidate{row: rowOf(1, "orders", "k")}))
	r = &replay{}
	large := rowOf(1, "orders", "k")
	large.Content = make([]byte, gatherBytes)
	require.True(t, r.add(candidate{row: large}))
}

func TestReplayWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		log := &logBuffer{}
		back := time.Now().Add(time.Minute)
		rows := &fakeRows{found: map[outbox.Ref]store.Found{}, fail: func(string) error {
			if time.Now().Before(back) {
				return store.ErrUnreachable
			}
			return nil
		}}
		r := &replay{rows: rows, topicOf: topicOfRow, log: log.logger()}
		row := rowOf(1, "orders", "k")
		rows.found[row.Ref()] = store.Found{Status: outbox.Sent}
		r.add(candidate{row: row})
		candidates, verdicts, err := r.look(t.Context())
		require.NoError(t, err)
		require.Len(t, candidates, 1)
		require.Equal(t, []replayVerdict{replaySettled}, verdicts)
		require.False(t, time.Now().Before(back))
		require.Equal(t, 1, log.count("failed, will go on trying"))
		require.Equal(t, 1, log.count("works again"))
		require.False(t, r.waiting())
	})
}

func TestReplayGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &replay{rows: &fakeRows{fail: func(string) error { return store.ErrUnreachable }}, log: zerolog.Nop()}
	r.add(candidate{row: rowOf(1, "orders", "k")})
	_, _, err := r.look(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// knowing returns a tail that holds one message.
func knowing(topic, msgID string) *tail {
	ids := kafka.NewPublished()
	ids.Add(topic, msgID)
	return &tail{ids: ids}
}
