package canal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/retry"
)

// progressPause is the time between two empty transactions while a busy server keeps the stream reading.
const progressPause = 200 * time.Millisecond

// notePause is the time between two looks at the clock for State while a large transaction is being read.
const notePause = 100 * time.Millisecond

// stuckLimit is how many connections may fail at one position, for a reason that may be the position's, before it is
// given up.
const stuckLimit = 3

// Stream starts, or starts again elsewhere. The server is not asked before Next.
func (r *Reader) Stream(_ context.Context, from position.Position) error {
	r.nextMu.Lock()
	defer r.nextMu.Unlock()
	r.endConnection()
	cursor, err := NewCursor(from)
	if err != nil {
		return err
	}
	if err := r.dispatch.StartAt(from); err != nil {
		return fmt.Errorf("stream from %s: %w", from, err)
	}
	r.cursor, r.attempts.stuck, r.pace.reported = cursor, 0, time.Time{}
	r.state.set(func(s *State) { s.Read = position.End{File: from.File, Pos: from.Pos} })
	return nil
}

// Next returns the next transaction that has something in it for us, or an empty one that reports progress. It
// blocks, and replaces broken connections by itself. It returns *PositionLost when the server can't go on from the
// position, an error of ctx, or an error after Close.
func (r *Reader) Next(ctx context.Context) (*assemble.Transaction, error) {
	r.nextMu.Lock()
	defer r.nextMu.Unlock()
	if r.cursor == nil {
		return nil, errors.New("binlog reader was not started: call Stream first")
	}
	for {
		conn, err := r.connected(ctx)
		if err != nil {
			return nil, err
		}
		ev, err := r.event(ctx, conn)
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err() // the connection stays: a Next with another context goes on
		}
		var t *assemble.Transaction
		if err == nil {
			handling, done := steadily(ctx)
			t, err = r.handle(handling, ev)
			done()
		}
		switch {
		case err != nil:
			if err := r.failed(ctx, err); err != nil {
				return nil, err
			}
		case t != nil:
			return t, nil
		}
	}
}

// event returns the next event, nil when none has come by the time that progress is due: an idle server shows only by
// its heartbeats, of which the first comes a whole period after the last event, that there is no more.
func (r *Reader) event(ctx context.Context, conn *connection) (*replication.BinlogEvent, error) {
	if !r.dispatch.HasProgress() {
		return conn.streamer.GetEvent(ctx)
	}
	soon, cancel := context.WithDeadline(ctx, r.pace.reported.Add(progressPause))
	defer cancel()
	ev, err := conn.streamer.GetEvent(soon)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return ev, err
}

// steadily returns a context that ends when ctx is cancelled, but not at its deadline: who waits for a moment only
// does not mean that an event which has come meanwhile is to be given up, and the connection with it.
func steadily(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, limited := ctx.Deadline(); !limited {
		return ctx, func() {}
	}
	steady, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return steady, func() { stop(); cancel() }
}

// handle handles an event, or nil for none, and returns what Next is to return, if anything.
func (r *Reader) handle(ctx context.Context, ev *replication.BinlogEvent) (t *assemble.Transaction, err error) {
	if ev != nil {
		if t, err = r.dispatch.Handle(ctx, ev); err != nil {
			return nil, err
		}
	}
	caughtUp, now := r.dispatch.CaughtUp(), time.Now()
	if t == nil && r.dispatch.HasProgress() && (caughtUp || now.Sub(r.pace.reported) >= progressPause) {
		t = r.dispatch.Progress()
	}
	if t == nil && caughtUp {
		if err := r.checkEnd(ctx, now); err != nil {
			return nil, err
		}
	}
	if t == nil && !caughtUp && now.Sub(r.pace.noted) < notePause {
		return nil, nil
	}
	if err := r.report(t, caughtUp, now); err != nil {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
		return nil, err
	}
	return t, nil
}

// report notes what is returned.
func (r *Reader) report(t *assemble.Transaction, caughtUp bool, now time.Time) error {
	r.pace.noted = now
	if t != nil {
		if err := r.cursor.Advance(t.End); err != nil {
			return err
		}
		r.pace.reported = now
		r.attempts.stuck = 0
		r.attempts.backoff.Reset()
	}
	r.state.set(func(s *State) {
		s.LastEvent, s.CaughtUp = now, caughtUp
		if t != nil {
			s.Read = position.End{File: t.End.File, Pos: t.End.Pos}
			s.Behind = max(0, now.Sub(t.CommittedAt))
		}
		if caughtUp {
			s.Behind = 0
		}
	})
	return nil
}

// connected returns the connection, and makes one if there is none, however long it takes.
func (r *Reader) connected(ctx context.Context) (*connection, error) {
	for {
		r.link.mu.Lock()
		conn, closed := r.link.connection, r.link.closed
		r.link.mu.Unlock()
		switch {
		case closed:
			return nil, errClosed
		case conn != nil:
			return conn, nil
		}
		err := r.connect(ctx)
		if err == nil {
			continue
		}
		if err := r.failed(ctx, err); err != nil {
			return nil, err
		}
	}
}

// connect asks the server whether it can go on from the cursor, and starts to stream there.
func (r *Reader) connect(ctx context.Context) error {
	ctx, cancel := untilClosed(ctx, r.link.closing)
	defer cancel()
	f, s, err := decided(ctx, r.meta, r.cursor.Position())
	if err != nil {
		return err
	}
	r.killStale(ctx)
	if !s.Usable {
		return &PositionLost{Reason: s.Recovery, Detail: s.Detail}
	}
	if s.Position.Server != r.cursor.Position().Server {
		// Its files have other names and no order with the ones before, so whoever tracks Ends has to begin anew.
		return &PositionLost{Reason: words.RecoveryOtherServer, Detail: "another server answers, " + s.Detail}
	}
	if r.cursor, err = NewCursor(s.Position); err != nil {
		return err
	}
	if err := r.dispatch.StartAt(s.Position); err != nil {
		return err
	}
	settings, err := r.meta.streamTLS(ctx)
	if err != nil {
		return err
	}
	conn, err := dialStream(ctx, r.cfg, settings, f.server, s.Position, f.placed(s.Position), r.log)
	if err != nil {
		return plain.Error(err)
	}
	r.link.mu.Lock()
	defer r.link.mu.Unlock()
	if r.link.closed {
		conn.close()
		return errClosed
	}
	r.link.connection, r.server = conn, f.server
	r.state.connected(time.Now())
	r.attempts.broken.Note(nil)
	r.log.Info().Str("position", s.Position.String()).Str("server", s.Position.Server).Str("version", f.server.Version).
		Msg("streaming")
	return nil
}

// failed ends the connection after an error, and waits before the next one. What it returns ends Next.
func (r *Reader) failed(ctx context.Context, err error) error {
	// An event is half handled, so the connection can't go on.
	id := r.endConnection()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case <-r.link.closing:
		return errClosed
	default:
	}
	if lost, ok := errors.AsType[*PositionLost](err); ok {
		return lost
	}
	if errors.Is(err, assemble.ErrNoTransaction) {
		return &PositionLost{Reason: words.RecoveryInvalid, Detail: err.Error()}
	}
	reason := reasonOf(err)
	if reason == words.ReconnectTimeout {
		r.attempts.stale = id
	}
	r.state.disconnected(time.Now(), reason, err)
	r.attempts.observe.Reconnect(reason)
	if reason == words.ReconnectFatal || reason == words.ReconnectMalformed {
		if r.attempts.stuck++; r.attempts.stuck >= stuckLimit {
			recovery, detail := fatalDetail(err)
			return &PositionLost{Reason: recovery, Detail: detail}
		}
	}
	r.attempts.broken.Note(fmt.Errorf("%s: %s", reason, plain.Text(err)))
	return r.pause(ctx)
}

// pause waits before the next attempt.
func (r *Reader) pause(ctx context.Context) error {
	waiting, cancel := untilClosed(ctx, r.link.closing)
	defer cancel()
	if err := retry.Wait(waiting, r.attempts.backoff.Next()); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errClosed
	}
	return nil
}

// endConnection ends the connection if there is one, and drops the transaction that it left half-read. It returns how
// the server calls the connection.
func (r *Reader) endConnection() (id uint32) {
	r.link.mu.Lock()
	conn := r.link.connection
	r.link.connection = nil
	r.link.mu.Unlock()
	if conn != nil {
		id = conn.connectionID()
		conn.close()
	}
	r.dispatch.Discard()
	return id
}

// killStale ends the connection that went silent: the server does not know yet that nobody listens, and goes on
// sending for minutes. It is ours only if it still sends a binlog: the number may belong to somebody else by now.
func (r *Reader) killStale(ctx context.Context) {
	id := r.attempts.stale
	if r.attempts.stale = 0; id == 0 {
		return
	}
	result, err := r.meta.Query(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return
	}
	for i := range result.Len() {
		if result.Named(i, "Id") == strconv.FormatUint(uint64(id), 10) && strings.HasPrefix(result.Named(i, "Command"), "Binlog Dump") {
			if _, err := r.meta.Query(ctx, "KILL "+strconv.FormatUint(uint64(id), 10)); err != nil {
				r.log.Debug().Str("error", plain.Text(err)).Msg("a stale binlog connection could not be ended")
			}
		}
	}
}
