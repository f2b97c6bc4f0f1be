package assemble

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/retry"
)

// errClosing ends a wait when Config.Closing is closed.
var errClosing = errors.New("the stream is being closed")

// closed reports whether the stream is being closed.
func (d *decoder) closed() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}

// waitFor repeats a question to the server until it is answered: with a value, with *unmapped, or ctx ends.
func waitFor[T any](ctx context.Context, d *decoder, st *tableState, query func() (T, error)) (T, error) {
	backoff := retry.Doubling(50*time.Millisecond, 5*time.Second).Attempts()
	var began time.Time
	defer func() { d.waitedSince(began) }()
	for {
		v, err := query()
		_, isUnmapped := asUnmapped(err)
		if err == nil || isUnmapped || ctx.Err() != nil || d.closed() {
			return v, err
		}
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) >= waitingPause {
			d.waiting(fmt.Sprintf("the columns of %s can't be read: %s; grant SELECT on it if that is missing, end the session that has locked it", st.table, plain.Text(err)))
		}
		d.columns.Note(fmt.Errorf("%s: %s", st.table, plain.Text(err)))
		if waitErr := d.wait(ctx, backoff.Next()); waitErr != nil {
			return v, waitErr
		}
	}
}

// waitedSince notes the end of a wait.
func (d *decoder) waitedSince(began time.Time) {
	if began.IsZero() {
		return
	}
	d.waited += time.Since(began)
	d.columns.Note(nil)
	d.waiting("")
}

// wait blocks for a time, or until ctx or the reader ends.
func (d *decoder) wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closing:
		return errClosing
	}
}
