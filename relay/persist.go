package relay

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/retry"
)

// fatalError is an error that trying again does not mend.
type fatalError struct{ error }

// fatal makes persist give up.
func fatal(err error) error { return fatalError{err} }

// Unwrap returns the cause.
func (e fatalError) Unwrap() error { return e.error }

// persist calls do until it works, with backoff, and logs the first failure and the recovery. It returns ctx's error, or
// a fatal one.
func persist(ctx context.Context, log zerolog.Logger, what string, do func(context.Context) error) error {
	backoff := retry.Doubling(200*time.Millisecond, 5*time.Second).Attempts()
	for failures := 0; ; failures++ {
		err := do(ctx)
		if err == nil {
			if failures > 0 {
				log.Info().Str("what", what).Int("attempt", failures+1).Msg("works again")
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, ok := errors.AsType[fatalError](err); ok {
			return err
		}
		if failures == 0 {
			log.Error().Err(err).Str("what", what).Msg("failed, will go on trying")
		}
		if err := retry.Wait(ctx, backoff.Next()); err != nil {
			return err
		}
	}
}
