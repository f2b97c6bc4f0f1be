package relay

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/bubble"
)

// surveyRows is a table of which the facts about it matter.
type surveyRows struct {
	allRows
	mu       sync.Mutex
	zone     time.Duration
	err      error
	counts   int
	refreshs int
}

func (r *surveyRows) Offset(context.Context) (time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.zone, r.err
}

func (r *surveyRows) Refresh(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refreshs++
	return r.err
}

func (r *surveyRows) CountParked(context.Context) (rows, keys int64, err error) { return 12, 3, nil }

func (r *surveyRows) Count(context.Context) (map[outbox.Status]int64, time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts++
	return map[outbox.Status]int64{outbox.Pending: int64(r.counts)}, time.Minute, r.err
}

func (r *surveyRows) set(zone time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.zone, r.err = zone, err
}

func (r *surveyRows) surveys() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// housekeepBench is a relay that keeps house, and that leads if the test gives it a session.
type housekeepBench struct {
	*Relay
	rows *surveyRows
	log  *logBuffer
}

func newHousekeepBench() *housekeepBench {
	b := &housekeepBench{rows: &surveyRows{zone: time.Hour}, log: &logBuffer{}}
	b.Relay = New(Config{Source: "test"}, Deps{Tables: tables(b.rows), Metrics: newMetrics()}, b.log.logger())
	return b
}

func (b *housekeepBench) start(ctx context.Context) {
	go b.housekeep(ctx)
	synctest.Wait()
}

func (b *housekeepBench) lead(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session = s
}

func TestHousekeepingFollowsTheTimeZone(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newHousekeepBench()
		committed := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		delay := func() time.Duration { return b.delay("2026-03-01 14:00:00", committed) }
		b.start(t.Context())
		require.Equal(t, time.Hour, delay())
		b.rows.set(2*time.Hour, errBroken)
		advance(t, housekeepEvery)
		require.Equal(t, time.Hour, delay(), "what can't be read stays as it was")
		b.rows.set(2*time.Hour, nil)
		advance(t, housekeepEvery)
		require.Zero(t, delay(), "summer time has begun")
	})
}

func TestHousekeepingShowsThatTheRelayLives(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newHousekeepBench()
		b.rows.set(0, errBroken)
		ctx, cancel := context.WithCancel(t.Context())
		b.start(ctx)
		advance(t, time.Hour)
		require.NoError(t, b.Live(), "a database that is away is no reason to kill the relay")
		cancel()
		advance(t, 2*time.Minute)
		require.Error(t, b.Live())
	})
}

func TestPrimaryThatIsAwayIsToldOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newHousekeepBench()
		b.start(t.Context())
		b.rows.set(0, errBroken)
		advance(t, time.Minute)
		require.Equal(t, 1, b.log.count("the primary can't be asked"))
		b.rows.set(0, nil)
		advance(t, time.Minute)
		require.Equal(t, 1, b.log.count("the primary answers again"))
	})
}

func TestOnlyTheLeaderSurveysAndNotOften(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newHousekeepBench()
		b.start(t.Context())
		advance(t, time.Minute)
		require.Zero(t, b.rows.surveys(), "standing by")
		b.lead(&session{})
		advance(t, housekeepEvery)
		require.Equal(t, 1, b.rows.surveys())
		advance(t, surveyEvery-housekeepEvery)
		require.Equal(t, 1, b.rows.surveys())
		advance(t, housekeepEvery)
		require.Equal(t, 2, b.rows.surveys())
	})
}

func TestSurveyTellsTheMetrics(t *testing.T) {
	t.Parallel()
	b := newHousekeepBench()
	cursor, err := canal.NewCursor(startPosition)
	require.NoError(t, err)
	b.deps.Distance = func(_ context.Context, from position.Position) (canal.Distance, error) {
		require.Equal(t, startPosition, from)
		return canal.Distance{BytesBehind: 42, KnownPurge: true, PurgedIn: time.Hour}, nil
	}
	m := b.deps.Metrics
	pending := func() float64 {
		var read dto.Metric
		require.NoError(t, m.TableRows.WithLabelValues(outbox.Pending.String()).Write(&read))
		return read.GetGauge().GetValue()
	}
	b.survey(t.Context(), &session{})
	require.InDelta(t, 1, pending(), 0)
	require.InDelta(t, 60, m.OldestPending.Value(), 0)
	require.InDelta(t, 12, m.ParkedMessages.Value(), 0)
	require.InDelta(t, 3, m.ParkedKeys.Value(), 0)
	require.True(t, math.IsNaN(m.LagBytes.Value()), "without a stream there is no distance")
	b.survey(t.Context(), &session{streaming: streaming{saver: &saver{cursor: cursor}}})
	require.InDelta(t, 42, m.LagBytes.Value(), 0)
	require.InDelta(t, 3600, m.HeadroomSeconds.Value(), 0)
	require.Equal(t, 2, b.rows.refreshs, "new tables are looked for")
	b.rows.set(0, errBroken)
	b.survey(t.Context(), &session{})
	require.InDelta(t, 2, pending(), 0, "what can't be read stays as it was")
}

// A purge that nobody can foretell leaves the headroom as it was.
func TestDistanceWithoutAKnownPurge(t *testing.T) {
	t.Parallel()
	b := newHousekeepBench()
	b.noteDistance(canal.Distance{BytesBehind: 1, KnownPurge: true, PurgedIn: time.Minute})
	b.noteDistance(canal.Distance{BytesBehind: 2})
	require.InDelta(t, 2, b.deps.Metrics.LagBytes.Value(), 0)
	require.InDelta(t, 60, b.deps.Metrics.HeadroomSeconds.Value(), 0)
}
