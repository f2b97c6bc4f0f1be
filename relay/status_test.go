package relay

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/sweeper"
	"example.com/outbox-relay/test/bubble"
)

func newRelay() *Relay {
	return New(Config{Source: "test"}, Deps{Metrics: newMetrics()}, (&logBuffer{}).logger())
}

func TestDelay(t *testing.T) {
	t.Parallel()
	committed := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const hour = time.Hour
	for _, tt := range []struct {
		name, next string
		zone       time.Duration
		unknown    bool
		want       time.Duration
	}{
		{name: "InUTC", next: "2026-03-01 13:00:00", want: hour},
		{name: "EastOfUTC", next: "2026-03-01 21:00:00", zone: 8 * hour, want: hour},
		{name: "WestOfUTC", next: "2026-03-01 09:30:00", zone: -3*hour - 30*time.Minute, want: hour},
		{name: "Fraction", next: "2026-03-01 12:00:00.250000", want: 250 * time.Millisecond},
		{name: "Past", next: "2026-03-01 11:59:59", want: -time.Second},
		{name: "Now", next: "2026-03-01 12:00:00"},
		{name: "ZeroDate", next: "0000-00-00 00:00:00"},
		{name: "ZeroInDate", next: "2026-00-01 00:00:00"},
		{name: "Nonsense", next: "soon"},
		// The sweeper compares in SQL, so it is right whatever the zone.
		{name: "ZoneUnknown", next: "2026-03-01 11:00:00", unknown: true, want: time.Second},
		{name: "ZeroDateZoneUnknown", next: "0000-00-00 00:00:00", unknown: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRelay()
			r.zone, r.zoneSet = tt.zone, !tt.unknown
			require.Equal(t, tt.want, r.delay(tt.next, committed))
		})
	}
}

func TestLiveWhileTheLoopsTurn(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		r := newRelay()
		require.NoError(t, r.Live())
		advance(t, time.Minute)
		require.NoError(t, r.Live())
		advance(t, time.Second)
		require.ErrorContains(t, r.Live(), "source test have not turned for 1m1s")
	})
}

// stating is a reader whose state the test sets.
type stating struct {
	Reader
	state canal.State
}

func (r *stating) State() canal.State { return r.state }

// leadingRelay returns a relay with a session that streams.
func leadingRelay(t *testing.T) (*Relay, *session, *stating) {
	t.Helper()
	r := newRelay()
	f, b, reader := newFlowBench(), newSaverBench(t), &stating{}
	s := &session{
		flow: f.flow, streaming: streaming{saver: b.saver, tracker: b.tracker, reader: reader},
		sweeper: sweeper.New(sweeper.Config{}, sweeper.Parts{Metrics: r.deps.Metrics, Log: r.log}),
	}
	r.begin(s)
	return r, s, reader
}

func TestStandbyIsReady(t *testing.T) {
	t.Parallel()
	r := newRelay()
	require.Equal(t, "test", r.Name())
	require.Equal(t, []Check{{Name: "role", Detail: "standby"}}, r.Ready())
	require.Equal(t, Status{Source: "test", Role: RoleStandby}, r.Status())
}

func TestStartingIsNotReady(t *testing.T) {
	t.Parallel()
	r := newRelay()
	r.setRole(RoleStarting)
	r.note(errBroken)
	checks := r.Ready()
	require.Len(t, checks, 1)
	require.ErrorIs(t, checks[0].Err, errBroken, "it says what it waits for")
	require.Equal(t, []string{errBroken.Error()}, r.Status().Errors)
}

func TestReadyTellsProgress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		state    canal.State
		quiet    time.Duration
		mark     error
		save     error
		unready  string // the check that fails
		degraded bool
	}{
		{name: "Fine", state: canal.State{Connected: true}},
		{name: "NotConnected", state: canal.State{LastError: "refused"}, unready: "binlog"},
		{name: "QuietForAMoment", state: canal.State{Connected: true}, quiet: quietTooLong},
		{name: "WaitsForColumns", state: canal.State{Connected: true, Waiting: "denied"}, unready: "binlog"},
		{name: "Quiet", state: canal.State{Connected: true}, quiet: quietTooLong + 1, unready: "binlog"},
		{name: "NotMarking", state: canal.State{Connected: true}, mark: errBroken, unready: "mark", degraded: true},
		{name: "NotSaving", state: canal.State{Connected: true}, save: errBroken, unready: "checkpoint", degraded: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				r, s, reader := leadingRelay(t)
				reader.state, s.flow.marker.failing, s.saver.err = tt.state, tt.mark, tt.save
				reader.state.LastEvent = time.Now().Add(-tt.quiet)
				var names []string
				for _, c := range r.Ready() {
					names = append(names, c.Name)
					require.Equal(t, c.Name == tt.unready, c.Err != nil, c.Name)
					if c.Err != nil {
						require.Equal(t, tt.degraded, c.Degraded)
					}
				}
				require.Equal(t, []string{"role", "mark", "kafka", "binlog", "checkpoint", "recovery"}, names)
			})
		})
	}
}

func TestStatusOfALeader(t *testing.T) {
	t.Parallel()
	r, s, reader := leadingRelay(t)
	reader.state = canal.State{Connected: true, Read: endAt(7), Behind: 1500 * time.Millisecond, LastError: "reset"}
	s.flow.marker.failing, s.saver.err = errors.New("locked"), errors.New("no redis")
	topics{s.flow.lines}.Close("gone", "unknown topic", time.Hour)
	s.tracker.Begin(endAt(1), 2)
	require.NoError(t, s.flow.inFlight.acquire(t.Context(), 20))
	r.streamed, r.reckoning = true, sweptReckoning(t)
	st := r.Status()
	require.Equal(t, Status{
		Source: "test", Role: RoleStream,
		StreamStatus:   StreamStatus{Connected: true, Read: "binlog.000001:704", Safe: "binlog.000001:4", LagSeconds: 1.5, Transactions: 1},
		FlightStatus:   FlightStatus{InFlight: 1, InFlightBytes: 20},
		Reconciliation: &Reconciliation{Delivered: 1, Recovered: 2, Unexplained: 1, Reasons: map[string]int64{"xa": 1, "unexplained": 1}},
		WaitingStatus:  WaitingStatus{Topics: []TopicStatus{{Name: "gone", State: "closed", Reason: "unknown topic"}}},
		Errors:         []string{"mark: locked", "checkpoint: no redis", "binlog: reset"},
	}, st)
	text, err := json.Marshal(st)
	require.NoError(t, err)
	require.NotContains(t, string(text), "checkpoint_saved", "a time that is not known is left out")
	r.end(s)
	require.Equal(t, RoleStarting, r.Status().Role)
}

// sweptReckoning has seen a message of the stream, and a sweep of two rows of which one was told of.
func sweptReckoning(t *testing.T) *sweeper.Reckoning {
	t.Helper()
	r := sweeper.NewReckoning(metrics.New("test").Source("test"))
	r.Delivered()
	r.Number("xa", 1)
	r.Take(rowOf(1, "orders", "k"), rowOf(2, "orders", "k"))
	return r
}

func TestStatusOfASweeperAlone(t *testing.T) {
	t.Parallel()
	r, s, _ := leadingRelay(t)
	s.saver = nil
	r.begin(s)
	require.Equal(t, RoleSweep, r.Status().Role)
	require.Len(t, r.Ready(), 3)
}
