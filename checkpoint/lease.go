package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
)

// minTTL is the shortest lease: below it a single slow answer would cost the leadership.
const minTTL = 300 * time.Millisecond

// Lease is the leadership of a source, kept in Redis for a limited time and extended by a goroutine of its own. It serves
// efficiency only: two relays may believe to lead for a moment, and then the fenced Save decides.
type Lease struct {
	client  redis.UniversalClient
	scripts scripts
	wrap    func(what string, err error) error
	log     zerolog.Logger

	key, token string
	ttl        time.Duration
	timeout    time.Duration

	lost chan struct{}
	keeper

	mu sync.Mutex
	held
}

// keeper is the goroutine that extends the lease.
type keeper struct {
	stop     context.CancelFunc
	finished chan struct{}
}

// held is how long a lease lasts.
type held struct {
	// over is set once the lease was lost or given back; it never returns.
	over bool
	// since is when the request was sent that extended the lease last.
	since time.Time
}

// AcquireLease waits until the source's lease is free or ctx ends, and takes it. Redis being away is waited out too. The lease
// must be given back with Release.
func (s *Store) AcquireLease(ctx context.Context, source string, ttl time.Duration) (*Lease, error) {
	k, err := s.keys(source)
	if err != nil {
		return nil, err
	}
	if ttl < minTTL {
		return nil, fmt.Errorf("lease of %s is %s: it must be at least %s", source, ttl, minTTL)
	}
	l := &Lease{
		client: s.client, scripts: s.scripts, wrap: s.wrap,
		log: s.log.With().Str("source", source).Logger(),
		key: k.leader, token: s.cfg.Owner + "#" + rand.Text(), ttl: ttl, timeout: min(s.cfg.Timeout, ttl/3),
		lost: make(chan struct{}), keeper: keeper{finished: make(chan struct{})},
	}
	if doubt, err := l.acquire(ctx); err != nil {
		err = fmt.Errorf("wait for the lease of %s: %w", source, err)
		if doubt {
			// The last answer was lost on its way: what it may have taken is given back, beyond the end of ctx.
			err = errors.Join(err, l.giveUp(context.WithoutCancel(ctx)))
		}
		return nil, err
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.keep(watch)
	return l, nil
}

// LeaseHolder returns who holds the source's lease, for the command line.
func (s *Store) LeaseHolder(ctx context.Context, source string) (holder string, held bool, err error) {
	k, err := s.keys(source)
	if err != nil {
		return "", false, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	token, err := s.client.Get(ctx, k.leader).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "", false, nil
	case err != nil:
		return "", false, s.wrap("look up the lease of "+source, err)
	}
	holder, _, _ = strings.Cut(token, "#")
	return holder, true, nil
}

// askEvery is how often a lease that another has is asked for, since it may be given back early: a takeover has a second.
const askEvery = 200 * time.Millisecond

// acquire asks until the lease is ours: when the other's ends, but at least every askEvery.
// When ctx ends first, doubt tells that the last question may have taken the lease although no answer came.
func (l *Lease) acquire(ctx context.Context) (doubt bool, err error) {
	backoff := retry.Doubling(100*time.Millisecond, 5*time.Second).Attempts()
	state := trouble.New(l.log, trouble.Texts{Fails: "lease is out of reach", Works: "lease is in reach again", Level: zerolog.WarnLevel})
	for {
		sent := time.Now()
		left, err := l.ask(ctx, l.scripts.acquire)
		if err == nil && left == 0 {
			l.extended(sent)
			return false, nil
		}
		doubt = err != nil
		if ctx.Err() != nil {
			return doubt, ctx.Err()
		}
		pause := min(time.Duration(left)*time.Millisecond, askEvery) + time.Millisecond
		if err != nil {
			state.Note(l.wrap("take the lease", err))
			pause = backoff.Next()
		} else {
			state.Note(nil)
			backoff.Reset()
		}
		if err := retry.Wait(ctx, pause); err != nil {
			return doubt, err
		}
	}
}

// keep extends the lease at a third of its time, and sooner again after a failure, until it is lost or given back.
func (l *Lease) keep(ctx context.Context) {
	defer close(l.finished)
	pause := l.ttl / 3
	for {
		wait := min(pause, l.remaining())
		if retry.Wait(ctx, wait) != nil {
			return
		}
		// First of all the clock: after a stop of the process everything that this goroutine believes is old.
		if !l.Valid() {
			l.log.Warn().Dur("ttl", l.ttl).Msg("lease lost: it could not be extended in time")
			return
		}
		sent := time.Now()
		ours, err := l.ask(ctx, l.scripts.extend)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.log.Debug().Err(l.wrap("extend the lease", err)).Msg("lease not extended")
			pause = l.ttl / 10
		case ours == 0:
			l.lose()
			l.log.Warn().Msg("lease lost: another relay holds it")
			return
		default:
			l.extended(sent)
			pause = l.ttl / 3
		}
	}
}

// ask runs one of the lease's scripts, for no longer than the lease can wait.
func (l *Lease) ask(ctx context.Context, script *redis.Script) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return script.Run(ctx, l.client, []string{l.key}, l.token, l.ttl.Milliseconds()).Int64()
}

// extended notes that the lease counts from sent: the time before the request, so that it ends here before it ends in Redis.
func (l *Lease) extended(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = sent
}

// Valid reports whether the lease is surely still ours, by the clock alone. Ask it before acting as leader after anything that
// may have taken long: it notices a stopped and continued process before Lost can.
func (l *Lease) Valid() bool {
	if l.remaining() > 0 {
		return true
	}
	l.lose()
	return false
}

// remaining returns how long the lease still lasts, 0 when it is over.
func (l *Lease) remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return 0
	}
	return max(0, l.ttl-elapsed(l.since, time.Now()))
}

// elapsed is the longer of what the two clocks say. The monotonic one stands still while a machine is suspended, the wall
// clock may be set back; neither may make a lease look younger than it is.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

func (l *Lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = true
		close(l.lost)
	}
}

// Lost is closed when the lease could not be extended in time or is another's. It stays open after Release.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Release gives the lease back and waits for its goroutine. A lease that is another's by now is left alone. Calling it again
// does no harm.
func (l *Lease) Release(ctx context.Context) error {
	l.stop()
	<-l.finished
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	return l.giveUp(ctx)
}

func (l *Lease) giveUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if err := l.scripts.release.Run(ctx, l.client, []string{l.key}, l.token).Err(); err != nil {
		return l.wrap("give back the lease", err)
	}
	return nil
}
