package relay

import (
	"context"
	"sync"
)

// window bounds what is on its way, in rows and bytes. One row always fits, however large, so that nothing waits for
// ever. It may be used concurrently.
type window struct {
	maxRows  int
	maxBytes int64

	mu    sync.Mutex
	rows  int
	bytes int64
	freed chan struct{} // closed and replaced at each release that someone waits for; nil when nobody waits
}

func newWindow(maxRows int, maxBytes int64) *window {
	return &window{maxRows: maxRows, maxBytes: maxBytes}
}

// tryAcquire takes a place for one row if there is one; otherwise it returns a channel that closes when it is worth
// another try.
func (w *window) tryAcquire(bytes int64) (bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rows == 0 || (w.rows < w.maxRows && w.bytes+bytes <= w.maxBytes) {
		w.rows++
		w.bytes += bytes
		return true, nil
	}
	if w.freed == nil {
		w.freed = make(chan struct{})
	}
	return false, w.freed
}

// acquire waits for a place for one row.
func (w *window) acquire(ctx context.Context, bytes int64) error {
	for {
		ok, freed := w.tryAcquire(bytes)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-freed:
		}
	}
}

// release gives back the places of rows that together had so many bytes.
func (w *window) release(rows int, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows -= rows
	w.bytes -= bytes
	if w.freed != nil {
		close(w.freed)
		w.freed = nil
	}
}

// used returns what is on its way.
func (w *window) used() (rows int, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows, w.bytes
}
