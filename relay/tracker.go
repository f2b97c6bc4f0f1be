package relay

import (
	"context"
	"sync"

	"example.com/outbox-relay/canal/position"
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
	// admitted is the End of the last transaction whose rows were all given to the gate, settled or not.
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

// Admitted tells that every row up to end was given to the gate.
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

// WaitAdmitted is WaitSettled for what was given to the gate.
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
