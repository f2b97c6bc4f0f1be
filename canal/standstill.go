package canal

import (
	"context"
	"errors"
	"time"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
)

// errStandstill ends a connection on which nothing comes although the server has more.
var errStandstill = errors.New("the server has more binlog than it sends: its binlog was reset under the connection, or the connection is stuck")

const (
	// standstillPause is the time between two looks at the server's end while it has nothing to send.
	standstillPause = 3 * time.Second
	// standstillLimit is how long the server may owe something before the connection is replaced. While it writes a huge
	// transaction its end moves on and nothing can be sent.
	standstillLimit = 30 * time.Second
)

// standstill is what is known of the server's binlog end while the server says that it has nothing more to send.
type standstill struct {
	looked time.Time
	// owed is an end beyond what was read, seen first at since; it is zero when nothing is owed.
	owed  position.Position
	since time.Time
}

// checkEnd is called when the server says that it has nothing more to send. It compares what was read with the
// binlog's end: RESET BINARY LOGS (RESET MASTER) leaves the connection on a file that is gone, and the heartbeats go
// on for ever. It returns *PositionLost when the binlog is another one, errStandstill when a new connection may help.
func (r *Reader) checkEnd(ctx context.Context, now time.Time) error {
	s := &r.pace.still
	file, pos, open := r.dispatch.Read()
	if open || now.Sub(s.looked) < standstillPause {
		return nil
	}
	s.looked = now
	ctx, cancel := untilClosed(ctx, r.link.closing)
	defer cancel()
	server, err := readServer(ctx, r.meta)
	if err != nil || server.id != r.server.id {
		return nil // it is a courtesy: the stream itself goes on
	}
	end, _, err := server.place(ctx, r.meta)
	if err != nil {
		return nil // it is a courtesy: the stream itself goes on
	}
	if !s.suspicious(file, pos, end, now) {
		return nil
	}
	if lost := r.lost(ctx); lost != nil {
		return lost
	}
	if s.owed.IsZero() || now.Sub(s.since) < standstillLimit {
		return nil
	}
	s.owed = position.Position{}
	return errStandstill
}

// suspicious reports whether the binlog's end does not go together with the place that was read.
func (s *standstill) suspicious(file string, pos uint64, end position.Position, now time.Time) bool {
	order, err := position.Compare(file, pos, end.File, end.Pos)
	if err != nil || order >= 0 {
		s.owed = position.Position{}
		return err != nil || order > 0
	}
	if order, err := position.Compare(file, pos, s.owed.File, s.owed.Pos); s.owed.IsZero() || err != nil || order >= 0 {
		s.owed, s.since = end, now // only just written: it will have come by the next time
		return false
	}
	return true
}

// lost asks whether the server could still go on from where the stream is. Nothing is said when it can't be asked.
func (r *Reader) lost(ctx context.Context) error {
	f, s, err := decided(ctx, r.meta, r.cursor.Position())
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	if !s.Usable {
		return &PositionLost{Reason: s.Recovery, Detail: s.Detail}
	}
	wrong, err := f.checkHistory(ctx, r.meta, s.Position)
	if err != nil || wrong == "" {
		return nil //nolint:nilerr // as above
	}
	return &PositionLost{Reason: words.RecoveryInvalid, Detail: wrong}
}
