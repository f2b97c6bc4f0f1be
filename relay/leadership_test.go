package relay

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/test/bubble"
)

// loading is a checkpoint store of which loading is what matters.
type loading struct {
	Checkpoints
	epoch    int64
	epochErr error
	rec      checkpoint.Record
	err      error
	until    time.Time // unreadable before
}

func (c *loading) NextEpoch(context.Context, string) (int64, error) {
	c.epoch++
	return c.epoch, c.epochErr
}

func (c *loading) Load(context.Context, string) (checkpoint.Record, error) {
	if time.Now().Before(c.until) {
		return checkpoint.Record{}, errBroken
	}
	return c.rec, c.err
}

func newLeadership(c Checkpoints, cfg Config) (*leadership, *logBuffer) {
	log := &logBuffer{}
	cfg.Source = "test"
	r := New(cfg, Deps{Checkpoints: c, Metrics: newMetrics()}, log.logger())
	return &leadership{relay: r, log: log.logger()}, log
}

var savedRecord = checkpoint.Record{
	Position: startPosition, Offsets: map[string]map[int32]int64{"orders": {0: 1}}, SavedAt: time.Unix(1000, 0),
}

func TestLoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		store  *loading
		want   error
		have   bool
		broken string
	}{
		{name: "Found", store: &loading{rec: savedRecord}, have: true},
		{name: "None", store: &loading{err: fmt.Errorf("get: %w", checkpoint.ErrNone)}},
		{name: "Lost", store: &loading{err: checkpoint.ErrLost}},
		{name: "Newer", store: &loading{err: checkpoint.ErrNewer}, want: checkpoint.ErrNewer},
		{name: "NewerEpoch", store: &loading{epochErr: checkpoint.ErrNewer}, want: checkpoint.ErrNewer},
		{name: "Broken", store: &loading{err: checkpoint.ErrBroken}, broken: checkpoint.ErrBroken.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, _ := newLeadership(tt.store, Config{})
			require.ErrorIs(t, l.load(t.Context()), tt.want)
			require.Equal(t, tt.have, l.have)
			require.Equal(t, tt.broken, l.broken)
			if tt.have {
				require.Equal(t, savedRecord.Position, l.pos)
				require.Equal(t, savedRecord.Offsets, l.offsets)
				require.Equal(t, savedRecord.SavedAt, l.savedAt)
			}
			if tt.want == nil {
				require.EqualValues(t, 1, l.epoch)
			}
		})
	}
}

// An unreadable checkpoint is never taken for none: it is waited for.
func TestLoadWaitsForRedis(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := &loading{rec: savedRecord, until: time.Now().Add(time.Hour)}
		l, log := newLeadership(store, Config{})
		require.NoError(t, l.load(t.Context()))
		require.True(t, l.have)
		require.False(t, time.Now().Before(store.until))
		require.Equal(t, store.epoch, l.epoch, "the last epoch handed out is the one that may save")
		require.Equal(t, 6, log.count("failed, will go on trying"), "at the beginning and each ten minutes of the hour")
	})
}

func TestPersist(t *testing.T) {
	t.Parallel()
	t.Run("GivesUpWhenFatal", func(t *testing.T) {
		t.Parallel()
		calls := 0
		err := persist(t.Context(), zerolog.Nop(), "try", func(context.Context) error { calls++; return retry.Final(errBroken) })
		require.ErrorIs(t, err, errBroken)
		require.Equal(t, 1, calls)
	})
	t.Run("EndsWithItsContext", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			log := &logBuffer{}
			require.ErrorIs(t, persist(ctx, log.logger(), "try", func(context.Context) error { return errBroken }), context.DeadlineExceeded)
			require.Equal(t, 1, log.count("failed"))
		})
	})
}

// resolving is a reader that says where to start.
type resolving struct {
	Reader
	policy string
	start  canal.Start
	err    error
}

func (r *resolving) Resolve(_ context.Context, _ position.Position, _ bool, policy string) (canal.Start, error) {
	r.policy = policy
	return r.start, r.err
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, broken, lost, found, want, note, policy string
		recoveries                                    float64
	}{
		{name: "Resumed", found: words.RecoveryResumed, want: words.RecoveryResumed, policy: canal.StartEarliest},
		{name: "Purged", found: "purged", want: "purged", note: "recovered: purged", policy: canal.StartEarliest, recoveries: 1},
		// "earliest" is for a source that never had a checkpoint: a broken one had, and all of the binlog may be sent.
		{name: "Broken", broken: "nonsense", found: words.RecoveryNone, want: "broken", note: "recovered: broken", policy: canal.StartNow, recoveries: 1},
		{name: "Lost", lost: "gone", found: words.RecoveryNone, want: "lost", note: "recovered: lost", policy: canal.StartEarliest, recoveries: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, _ := newLeadership(nil, Config{Start: canal.StartEarliest})
			l.broken, l.lost = tt.broken, tt.lost
			reader := &resolving{start: canal.Start{Position: startPosition, Recovery: tt.found}}
			start, err := l.resolve(t.Context(), reader)
			require.NoError(t, err)
			require.Equal(t, tt.want, start.Recovery)
			require.Equal(t, tt.note, l.note(start))
			require.Equal(t, tt.policy, reader.policy)
			require.Equal(t, tt.want, l.relay.Status().Recovery)
			l.started(start, &replay{over: true}, true).finish()
			require.InDelta(t, tt.recoveries, value(t, l.relay.deps.Metrics.Recoveries.WithLabelValues(tt.want)), 0)
		})
	}
}

func TestResolveFails(t *testing.T) {
	t.Parallel()
	l, _ := newLeadership(nil, Config{})
	_, err := l.resolve(t.Context(), &resolving{err: errBroken})
	require.ErrorIs(t, err, errBroken)
}

func TestSessionsThatFailInARowAreNotAllTold(t *testing.T) {
	t.Parallel()
	l, log := newLeadership(nil, Config{})
	for failures := range 2 * logEvery {
		l.report(errors.New("no route"), failures)
	}
	require.Equal(t, 2, log.count(`"level":"error"`))
	require.Equal(t, []string{"no route"}, l.relay.Status().Errors)
}
