package archive

import (
	"context"
	"errors"
	"slices"
	"time"

	"example.com/outbox-relay/internal/archive/history"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/store"
)

const (
	// chunk is how many rows one query looks at.
	chunk = 1000
	// youngEnd is how many chunks of young rows in a row end the search at a lane's head: what is behind is younger still,
	// where ids follow the time.
	youngEnd = 4
	// prospect is how many chunks without a find each pass goes on from where the last one ended, for tables whose ids do
	// not follow the time, and for rows that were reported consumed in another order. After the lane's end it begins anew.
	prospect = 20
)

// Result is what a pass did.
type Result struct {
	// Moved is how many rows were moved, or would be in a dry run.
	Moved int64
	// Looked is how many were looked at.
	Looked int64
	// Skipped is how many were found and could not be moved: locked, or changed since.
	Skipped int64
	// Tables is Moved by table.
	Tables map[outbox.Table]int64
}

// Pass archives what is old enough in every table, or with dryRun only counts it. A table that can't be archived does not
// keep the others from it. progress, when not nil, is called after each batch.
func (a *Archiver) Pass(ctx context.Context, dryRun bool, progress func(Result)) (Result, error) {
	p := &pass{archiver: a, dryRun: dryRun, progress: progress, result: Result{Tables: map[outbox.Table]int64{}}}
	defer a.paused(words.PausedBusy, false)
	var errs []error
	for _, table := range a.rows.Tables() {
		if err := p.table(ctx, table); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return p.result, ctx.Err()
		}
	}
	err := errors.Join(errs...)
	a.paused(words.PausedError, err != nil)
	return p.result, err
}

// pass is one pass at work.
type pass struct {
	archiver *Archiver
	dryRun   bool
	progress func(Result)
	result   Result
}

func (p *pass) table(ctx context.Context, table outbox.Table) error {
	a := p.archiver
	followed := p.dryRun
	for number := range a.rows.Lanes(table) {
		l := lane{table, number}
		at := store.Spot{}
		for young := 0; young < youngEnd; {
			looked, err := p.chunk(ctx, l, at, &followed)
			if err != nil {
				return err
			}
			at = looked.Next
			switch {
			case looked.Rows < chunk:
				young = youngEnd
				delete(a.reached, l) // the whole lane has been seen
				at = store.Spot{}
			case looked.Young:
				young++
			default:
				young = 0
			}
		}
		if at == (store.Spot{}) {
			continue
		}
		if err := p.prospect(ctx, l, at, &followed); err != nil {
			return err
		}
	}
	return nil
}

// prospect looks beyond the young rows at a lane's head, a bounded way in each pass.
func (p *pass) prospect(ctx context.Context, l lane, head store.Spot, followed *bool) error {
	a := p.archiver
	at, ok := a.reached[l]
	if !ok {
		at = head
	}
	for vain := 0; vain < prospect; vain++ {
		looked, err := p.chunk(ctx, l, at, followed)
		if err != nil {
			return err
		}
		if looked.Rows < chunk {
			delete(a.reached, l)
			return nil
		}
		if len(looked.IDs) > 0 {
			vain = -1
		}
		at = looked.Next
		a.reached[l] = at
	}
	return nil
}

// chunk looks at some rows and moves those that are old enough.
func (p *pass) chunk(ctx context.Context, l lane, at store.Spot, followed *bool) (history.Looked, error) {
	a := p.archiver
	looked, err := a.rows.Look(ctx, l.table, l.number, at, chunk)
	if err != nil {
		return looked, err
	}
	p.result.Looked += int64(looked.Rows)
	if p.dryRun {
		p.count(l.table, len(looked.IDs))
		return looked, nil
	}
	if len(looked.IDs) > 0 && !*followed {
		if err := a.rows.Follow(ctx, l.table); err != nil {
			return looked, err
		}
		*followed = true
	}
	// By primary key, as they are stored.
	ids := slices.Clone(looked.IDs)
	for len(ids) > 0 {
		n := min(len(ids), a.pace.size)
		if err := p.batch(ctx, l.table, ids[:n]); err != nil {
			return looked, err
		}
		ids = ids[n:]
	}
	return looked, nil
}

// batch moves some rows once it is time.
func (p *pass) batch(ctx context.Context, table outbox.Table, ids []uint64) error {
	a := p.archiver
	if err := a.untilApplied(ctx); err != nil {
		return err
	}
	if err := retry.Wait(ctx, a.pace.pause); err != nil {
		return err
	}
	began := time.Now()
	moved, err := a.rows.Move(ctx, table, ids)
	if err != nil {
		return err
	}
	took := time.Since(began)
	a.pace.took(moved, took)
	a.paused(words.PausedBusy, a.pace.busy)
	a.metrics.Archive.Batch.Observe(took.Seconds())
	a.metrics.Archive.Rows.WithLabelValues(words.ArchiveMoved).Add(float64(moved))
	a.metrics.Archive.Rows.WithLabelValues(words.ArchivePassedOver).Add(float64(len(ids) - moved))
	p.result.Skipped += int64(len(ids) - moved)
	p.count(table, moved)
	return nil
}

func (p *pass) count(table outbox.Table, n int) {
	p.result.Moved += int64(n)
	if n > 0 {
		p.result.Tables[table] += int64(n)
	}
	if p.progress != nil {
		p.progress(p.result)
	}
}
