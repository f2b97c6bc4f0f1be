package relay

import (
	"context"
	"errors"
	"time"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// straysEvery is how often it is tried again to mark rows of a table that was gone.
const straysEvery = 2 * time.Second

// setAside writes a batch table by table, and keeps for later what belongs to tables that are gone (dropped, or
// renamed away): one of them must not keep the rows of all others from being marked. It returns the rest; with an
// error, some of that is not written.
func (m *marker) setAside(ctx context.Context, batch []verdict) ([]verdict, error) {
	var rest, gone []verdict
	var errs []error
	for _, group := range perTable(batch) {
		err := m.writeOnce(ctx, group)
		if errors.Is(err, store.ErrGone) {
			gone = append(gone, group...)
			m.noteGone(err)
			continue
		}
		rest = append(rest, group...)
		errs = append(errs, err)
	}
	m.mu.Lock()
	m.strays = append(m.strays, gone...)
	m.writing = rest
	m.mu.Unlock()
	return rest, errors.Join(errs...)
}

// perTable groups outcomes by table, each group in its order.
func perTable(batch []verdict) map[outbox.Table][]verdict {
	groups := make(map[outbox.Table][]verdict)
	for _, v := range batch {
		groups[v.it.ref.Table] = append(groups[v.it.ref.Table], v)
	}
	return groups
}

// noteGone logs the first of several failures.
func (m *marker) noteGone(err error) {
	m.mu.Lock()
	first := m.gone == nil
	m.gone = err
	m.mu.Unlock()
	if first {
		missing := m.cfg.notes.gone(err)
		m.mu.Lock()
		m.missing = missing
		m.mu.Unlock()
		m.log.Error().Err(err).Msg("rows of a missing table can't be marked, they hold the checkpoint and the sweeps: bring the table back, or reset the checkpoint")
	}
}

// strayTimer fires when strays are to be tried again, never when there are none.
func (m *marker) strayTimer() (<-chan time.Time, func()) {
	m.mu.Lock()
	n := len(m.strays)
	m.mu.Unlock()
	if n == 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(straysEvery)
	return timer.C, func() { timer.Stop() }
}

// retryStrays tries the strays again, at most every straysEvery unless it is the last time.
func (m *marker) retryStrays(ctx context.Context, last bool) {
	m.mu.Lock()
	due := len(m.strays) > 0 && (last || time.Since(m.tried) >= straysEvery)
	strays := m.strays
	m.mu.Unlock()
	if !due || m.cfg.check() != nil {
		return
	}
	var left, written []verdict
	for _, group := range perTable(strays) {
		if m.writeOnce(ctx, group) != nil {
			left = append(left, group...)
		} else {
			written = append(written, group...)
		}
	}
	m.mu.Lock()
	m.strays, m.tried = left, time.Now()
	missing := m.missing
	if len(left) == 0 {
		m.gone, m.missing = nil, nil
	}
	m.mu.Unlock()
	missing.held(len(written))
	if len(left) == 0 {
		missing.finish()
	}
	if len(written) > 0 {
		m.log.Info().Int("count", len(written)).Msg("rows of a table that was missing are marked")
		m.settled(written)
	}
}
