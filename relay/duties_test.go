package relay

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/bubble"
)

// oneLock is a lock that can be got once, and taken away.
type oneLock struct {
	lost     chan struct{}
	released func()
}

func (l *oneLock) Acquire(context.Context) (Held, error) { return l, nil }
func (l *oneLock) Lost() <-chan struct{}                 { return l.lost }
func (l *oneLock) Valid() bool                           { return true }
func (l *oneLock) Release(context.Context) error         { l.released(); return nil }

// What else the leader does runs while it leads, and has ended before the lock is given back.
func TestDutiesRunWhileLeading(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*oneLock, context.CancelFunc){
		"LockLost": func(l *oneLock, _ context.CancelFunc) { close(l.lost) },
		"Stopped":  func(_ *oneLock, stop context.CancelFunc) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				var running, ran atomic.Int32
				lock := &oneLock{lost: make(chan struct{}), released: func() {
					assert.Zero(t, running.Load(), "the lock is given back while a duty runs")
				}}
				duty := func(ctx context.Context) {
					running.Add(1)
					ran.Add(1)
					<-ctx.Done()
					time.Sleep(3 * time.Second) //nolint:forbidigo // the bubble's clock: it takes its time to end
					running.Add(-1)
				}
				r := New(Config{Source: "test", Mode: Auto, DrainTimeout: time.Second}, Deps{
					Lock: lock, Checkpoints: &loading{}, Metrics: newMetrics(), WhileLeading: []func(context.Context){duty, duty},
					OpenReader: func(context.Context) (Reader, error) { return nil, errors.New("away") },
				}, (&logBuffer{}).logger())
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				done := make(chan error, 1) // size 1: nobody may be waiting when it ends
				go func() { done <- r.once(ctx) }()
				synctest.Wait()
				require.EqualValues(t, 2, running.Load())
				end(lock, stop)
				err := <-done
				if name == "LockLost" {
					require.ErrorIs(t, err, ErrLockLost)
				}
				assert.EqualValues(t, 2, ran.Load())
				assert.Zero(t, running.Load())
			})
		})
	}
}
