package retry

import (
	"context"
	"time"
)

// Wait blocks for d, or until ctx ends; then it returns ctx's error. A d of zero or less does not wait, but it still
// reports a context that has ended, so a loop of empty waits can be stopped.
func Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
