package relay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/sweeper"
	"example.com/outbox-relay/test/bubble"
)

// endReader is a reader of which the binlog's end matters; steps are what was asked, in order.
type endReader struct {
	Reader
	end   position.End
	err   error
	steps *[]string
}

func (r *endReader) End(context.Context) (position.Position, error) {
	*r.steps = append(*r.steps, "end")
	return position.Position{File: r.end.File, Pos: r.end.Pos}, r.err
}

type fakeUpstream struct {
	err   error
	never bool
	steps *[]string
}

func (u *fakeUpstream) Applied(ctx context.Context) error {
	*u.steps = append(*u.steps, "applied")
	if u.never {
		<-ctx.Done()
		return ctx.Err()
	}
	return u.err
}

// watermarkBench is a watermark over a stream of one transaction, which is neither settled nor given to the gate yet.
type watermarkBench struct {
	*watermark
	txn   *Txn
	end   *endReader
	steps []string
	lost  error
}

func newWatermarkBench() *watermarkBench {
	b := &watermarkBench{}
	tracker := NewTracker(startPosition)
	b.txn = tracker.Begin(endAt(1), 1)
	b.end = &endReader{end: endAt(1), steps: &b.steps}
	b.watermark = &watermark{check: func() error { return b.lost }, reader: b.end, tracker: tracker}
	return b
}

func TestPassedWaitsUntilAllIsSettled(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newWatermarkBench()
		passed := make(chan error, 1)
		go func() { passed <- b.Passed(t.Context()) }()
		synctest.Wait()
		b.tracker.Admitted(endAt(1))
		synctest.Wait()
		require.Empty(t, passed, "what the gate has may still be on its way")
		b.txn.Settle(1)
		require.NoError(t, <-passed)
	})
}

func TestAdmittedWaitsOnlyForTheGate(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newWatermarkBench()
		admitted := make(chan error, 1)
		go func() { admitted <- b.Admitted(t.Context()) }()
		synctest.Wait()
		require.Empty(t, admitted)
		b.tracker.Admitted(endAt(1))
		require.NoError(t, <-admitted)
	})
}

// A stream that lags is no reason to send. Holding ends by itself after holdAtMost, so Admitted waits no longer.
func TestWatermarkThatIsNotReachedIsBehind(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newWatermarkBench()
		began := time.Now()
		require.ErrorIs(t, b.Passed(t.Context()), sweeper.ErrBehind)
		require.Equal(t, passedTimeout, time.Since(began))
		began = time.Now()
		require.ErrorIs(t, b.Admitted(t.Context()), sweeper.ErrBehind)
		require.Equal(t, holdAtMost, time.Since(began))
	})
}

func TestWatermarkEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newWatermarkBench()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		for _, wait := range []func(context.Context) error{b.Passed, b.Admitted} {
			err := wait(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, sweeper.ErrBehind)
		}
	})
}

func TestPassedWithoutTheLock(t *testing.T) {
	t.Parallel()
	b := newWatermarkBench()
	b.txn.Settle(1)
	b.lost = ErrLockLost
	require.ErrorIs(t, b.Passed(t.Context()), ErrLockLost)
	require.Empty(t, b.steps)
	require.ErrorIs(t, noStream{check: b.check}.Passed(t.Context()), ErrLockLost)
	b.lost = nil
	require.NoError(t, noStream{check: b.check}.Passed(t.Context()))
	require.NoError(t, noStream{}.Admitted(t.Context()))
}

func TestEndThatCanNotBeRead(t *testing.T) {
	t.Parallel()
	b := newWatermarkBench()
	b.txn.Settle(1)
	b.end.err = errBroken
	require.ErrorIs(t, b.Passed(t.Context()), errBroken)
	require.ErrorIs(t, b.Admitted(t.Context()), errBroken)
}

// The table is read on the primary: the replica has to have applied all of that before its binlog's end says anything.
func TestUpstreamIsAppliedBeforeTheEndIsRead(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newWatermarkBench()
		b.txn.Settle(1)
		upstream := &fakeUpstream{steps: &b.steps}
		b.upstream = upstream
		require.NoError(t, b.Passed(t.Context()))
		require.Equal(t, []string{"applied", "end"}, b.steps)
		upstream.err = errBroken
		require.ErrorIs(t, b.Passed(t.Context()), errBroken)
		upstream.never = true
		began := time.Now()
		require.ErrorIs(t, b.Passed(t.Context()), sweeper.ErrBehind, "a replica that lags")
		require.Equal(t, passedTimeout, time.Since(began), "both waits together")
	})
}
