package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/sweeper"
)

// Tracker knows which transactions are settled. A transaction is settled once each of its rows is: acked by Kafka and
// marked in MySQL, or recorded in MySQL as the sweeper's. The safe position is the End of the last transaction before
// which everything is settled, so it is always a transaction's end and only moves forward.
//
// Begin is for one caller, in commit order; everything else may be called concurrently.
type Tracker struct {
	mu      sync.Mutex
	open    []*Txn         // in commit order; the first is never settled
	safe    []position.End // settled since TakeSafe was last called
	last    position.End
	changed chan struct{} // closed whenever last or admitted moves; nil when nobody waits
	// admitted is the End of the last transaction whose rows were all given to their lines, settled or not.
	admitted position.End
}

// Txn is one transaction on its way.
type Txn struct {
	tracker *Tracker
	end     position.End
	left    int
}

// NewTracker returns a tracker for a stream that starts at start.
func NewTracker(start position.Position) *Tracker {
	begin := position.End{File: start.File, Pos: start.Pos}
	return &Tracker{last: begin, admitted: begin}
}

// Begin registers the next transaction in commit order, with its number of rows. One without rows is settled as soon
// as all before it are.
func (t *Tracker) Begin(end position.End, rows int) *Txn {
	txn := &Txn{tracker: t, end: end, left: rows}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = append(t.open, txn)
	t.advance()
	return txn
}

// Settle tells that n more rows of the transaction are settled.
func (x *Txn) Settle(n int) {
	t := x.tracker
	t.mu.Lock()
	defer t.mu.Unlock()
	x.left -= n
	if x.left == 0 && t.open[0] == x {
		t.advance()
	}
}

// advance moves the safe position over the settled transactions at the head. The caller holds mu.
func (t *Tracker) advance() {
	n := 0
	for n < len(t.open) && t.open[n].left <= 0 {
		t.safe = append(t.safe, t.open[n].end)
		n++
	}
	if n == 0 {
		return
	}
	t.last = t.open[n-1].end
	clear(t.open[:n]) // or the backing array keeps them alive
	t.open = t.open[n:]
	t.tell()
}

// tell wakes who waits for a place. The caller holds mu.
func (t *Tracker) tell() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// Admitted tells that every row up to end was given to its lines.
func (t *Tracker) Admitted(end position.End) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.admitted = end
	t.tell()
}

// TakeSafe returns the Ends that became safe since the last call, in order. The caller adds them up; the tracker
// forgets them.
func (t *Tracker) TakeSafe() []position.End {
	t.mu.Lock()
	defer t.mu.Unlock()
	safe := t.safe
	t.safe = nil
	return safe
}

// Open returns the number of transactions that are not settled or wait behind one that is not.
func (t *Tracker) Open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// Settled reports whether everything up to a place is settled. Places that have no order with the stream's are not.
func (t *Tracker) Settled(file string, pos uint64) bool {
	t.mu.Lock()
	last := t.last
	t.mu.Unlock()
	order, err := position.Compare(last.File, last.Pos, file, pos)
	return err == nil && order >= 0
}

// WaitSettled returns nil once everything up to file:pos is settled, the context's error before that, or an error when
// the two places have no order (the server's binlog was renamed).
func (t *Tracker) WaitSettled(ctx context.Context, file string, pos uint64) error {
	return t.wait(ctx, file, pos, func() position.End { return t.last })
}

// WaitAdmitted is WaitSettled for what was given to lines.
func (t *Tracker) WaitAdmitted(ctx context.Context, file string, pos uint64) error {
	return t.wait(ctx, file, pos, func() position.End { return t.admitted })
}

// wait waits until a place, which read returns under the lock, has come to file:pos.
func (t *Tracker) wait(ctx context.Context, file string, pos uint64, read func() position.End) error {
	for {
		t.mu.Lock()
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		at, changed := read(), t.changed
		t.mu.Unlock()
		order, err := position.Compare(at.File, at.Pos, file, pos)
		if err != nil {
			return err
		}
		if order >= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// watermark is how the sweeper learns that the stream has passed what the table shows (sweeper.Stream).
type watermark struct {
	check    func() error // an error when nothing may be sent any more
	reader   Reader
	tracker  *Tracker
	upstream Upstream
}

// Upstream relates the server where rows are marked to the one whose binlog is read, when they are not the same.
type Upstream interface {
	// Applied returns nil once the replica has applied everything that the primary had committed at the call.
	Applied(ctx context.Context) error
}

// passedTimeout is how long a sweep waits for the stream. A stream that lags longer is no reason to send.
const passedTimeout = 10 * time.Second

// Passed reads the server's binlog end, after the caller has read the table, and waits until everything up to there is
// settled. That is sound because a transaction is in the binlog before its rows can be read.
func (w *watermark) Passed(ctx context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	return w.reach(ctx, passedTimeout, w.tracker.WaitSettled)
}

// Admitted waits until the pump has given everything up to the server's present binlog end to its lines, which may hold it.
func (w *watermark) Admitted(ctx context.Context) error {
	return w.reach(ctx, holdAtMost, w.tracker.WaitAdmitted)
}

// reach reads the binlog's end and waits for it, but not longer than limit.
func (w *watermark) reach(ctx context.Context, limit time.Duration, wait func(context.Context, string, uint64) error) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := w.end(bounded, wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return sweeper.ErrBehind
	}
	return err
}

func (w *watermark) end(ctx context.Context, wait func(context.Context, string, uint64) error) error {
	if w.upstream != nil {
		if err := w.upstream.Applied(ctx); err != nil {
			return err
		}
	}
	end, err := w.reader.End(ctx)
	if err != nil {
		return err
	}
	return wait(ctx, end.File, end.Pos)
}

// noStream is the watermark where no binlog is read: the table is all there is.
type noStream struct{ check func() error }

// Passed returns at once.
func (n noStream) Passed(context.Context) error { return n.check() }

// Admitted returns at once: nothing is held.
func (noStream) Admitted(context.Context) error { return nil }
