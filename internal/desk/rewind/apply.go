package rewind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/store"
)

// lockWait is how long a command waits for a lock that nobody should hold.
const lockWait = 3 * time.Second

// deposeWait is how long a command waits for a relay to notice that it is fenced off: it saves every 10 s at the least.
const deposeWait = 20 * time.Second

// Apply makes the move, once. The leader's lock is held meanwhile, so that no relay starts half-way. While a relay leads
// the source it is refused, unless force says to fence that relay off.
func (m *Move) Apply(ctx context.Context, who checkpoint.Who, force bool) (err error) {
	take := m.lock
	if force {
		take = m.depose
	}
	release, err := take(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if m.skips() {
		if m.outcome.Deferred, err = handOver(ctx, m.rows); err != nil {
			return fmt.Errorf("hand the pending rows to the sweeper: %w; nothing else was changed", err)
		}
	}
	if m.event == checkpoint.EventUndo {
		err = m.checkpoints.Undo(ctx, m.scope.Source.Name, who)
	} else {
		ch := checkpoint.Change{Who: who, Event: m.event}
		if m.to != nil {
			ch.To = &checkpoint.Record{Position: *m.to}
		}
		err = m.checkpoints.Reset(ctx, m.scope.Source.Name, ch)
	}
	m.outcome.Applied = err == nil
	return err
}

// skips reports whether rows may lie between the old position and the new one, which the stream then never brings.
func (m *Move) skips() bool {
	return m.to != nil && m.outcome.Direction != string(Back) && m.outcome.Direction != string(Same)
}

// lock refuses when somebody leads the source, and takes the lock otherwise.
func (m *Move) lock(ctx context.Context) (release func() error, err error) {
	const advice = "stop it first (SIGTERM), or use --force: it is then fenced off and begins again from the new position"
	switch v := m.outcome.Leader; {
	case !v.Known && v.Lock != "none":
		return nil, fmt.Errorf("whether a relay leads source %s can't be told: %s; repair that, or use --force", m.scope.Source.Name, v.Problem)
	case v.Led:
		return nil, fmt.Errorf("a relay leads source %s (%s); %s", m.scope.Source.Name, v.Holder, advice)
	}
	release, err = m.acquire(ctx, lockWait)
	if err != nil {
		return nil, fmt.Errorf("take the lock of source %s: %w; most likely a relay has just started: %s", m.scope.Source.Name, err, advice)
	}
	return release, nil
}

// depose fences the leader off first and waits until it has let go. A relay that goes on reading while its pending rows
// are handed to the sweeper would send newer rows of their keys before them. One that does not let go is not waited for
// longer: it can't save any more.
func (m *Move) depose(ctx context.Context) (release func() error, err error) {
	if m.outcome.Leader.Led {
		if _, err := m.checkpoints.NextEpoch(ctx, m.scope.Source.Name); err != nil {
			return nil, fmt.Errorf("fence off the relay that leads source %s: %w", m.scope.Source.Name, err)
		}
	}
	release, err = m.acquire(ctx, deposeWait)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		m.scope.Log.Warn().Err(err).Msg("the relay that leads does not let go, going on without the lock")
		return func() error { return nil }, nil
	}
	return release, nil
}

func (m *Move) acquire(ctx context.Context, patience time.Duration) (release func() error, err error) {
	waiting, giveUp := context.WithTimeout(ctx, patience)
	defer giveUp()
	held, err := wire.Lock(m.scope.Config, m.scope.Source.Name, m.rows, m.checkpoints).Acquire(waiting)
	if err != nil {
		return nil, err
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockWait) // released although the command is interrupted
		defer cancel()
		return held.Release(ctx)
	}, nil
}

// handOver makes every row that is pending now the sweeper's, as a relay does that starts without a position: the stream
// will not bring it, and what is newer in its topic must not pass it.
func handOver(ctx context.Context, rows *store.Store) (int64, error) {
	const batch = 1000
	last, err := rows.LastIDs(ctx)
	if err != nil {
		return 0, err
	}
	var total int64
	for {
		refs, err := rows.Unrecorded(ctx, last, batch)
		if err != nil || len(refs) == 0 {
			return total, err
		}
		if err := rows.Defer(ctx, refs); err != nil {
			return total, err
		}
		total += int64(len(refs))
	}
}
