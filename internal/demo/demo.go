package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/outbox-relay/internal/demo/consume"
	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/outbox"
)

// run is one demo under way.
type run struct {
	cfg    Config
	prefix string
	ledger *oracle.Ledger
	log    *oracle.Log
	writer *workload.Writer
	tell   func(Progress)
}

// Run writes, consumes, waits until everything has arrived and is marked, and judges. It tells its progress about once
// a second. An error means that there is no verdict; a bad verdict is a report that is not OK.
func Run(ctx context.Context, cfg Config, tell func(Progress)) (report *Report, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	key, err := cfg.keySource()
	if err != nil {
		return nil, err
	}
	id := strings.ToLower(rand.Text()[:8])
	load := cfg.workload(id, key)
	load.Patience = max(cfg.Patience, load.TxnTimeout)
	r := &run{cfg: cfg, prefix: load.Prefix + "-", ledger: oracle.NewLedger(), log: oracle.NewLog(), tell: tell}
	if r.writer, err = workload.New(cfg.DB, load, r.ledger); err != nil {
		return nil, err
	}
	if err := workload.CreateOrders(ctx, cfg.DB, load.Orders); err != nil {
		return nil, fmt.Errorf("the demo's business table: %w", err)
	}
	defer func() { err = errors.Join(err, r.dropOrders(ctx, load.Orders)) }()
	begun := time.Now()
	if err := r.play(ctx); err != nil {
		return nil, err
	}
	report, err = r.judge(ctx, time.Since(begun))
	return report, err
}

// play writes and consumes until both are done.
func (r *run) play(ctx context.Context) error {
	consumer, err := consume.Open(r.cfg.Brokers.consumer(r.cfg.Topics, r.prefix), r.log)
	if err != nil {
		return err
	}
	playing, stop := context.WithCancel(ctx)
	defer stop()
	group, playing := errgroup.WithContext(playing)
	written := make(chan struct{})
	group.Go(func() error { return consumer.Run(playing) })
	group.Go(func() error {
		defer close(written)
		_, err := r.writer.Run(playing)
		return err
	})
	group.Go(func() error {
		defer stop()
		return r.watch(playing, written)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// How often the run is looked at, how often somebody is told, and how long after the last record nothing more may come
// before the run is over: a copy, or a record of what was rolled back, would come late.
const (
	lookEvery = 50 * time.Millisecond
	tellEvery = time.Second
	quiet     = 500 * time.Millisecond
)

// watch returns when everything that was written has arrived and is marked, when nothing has moved for as long as the
// patience lasts, or when the context ends.
func (r *run) watch(ctx context.Context, written <-chan struct{}) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last, moved, told := Progress{}, time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, state := time.Now(), r.progress()
		if state != last {
			last, moved = state, now
		}
		if now.Sub(told) >= tellEvery {
			r.tell(state)
			told = now
		}
		if now.Sub(moved) >= r.cfg.Patience {
			return nil
		}
		if !closed(written) || now.Sub(moved) < quiet {
			continue
		}
		if done, err := r.done(ctx); done || err != nil {
			r.tell(state)
			return err
		}
	}
}

func (r *run) progress() Progress {
	counts := r.ledger.Counts()
	return Progress{
		Transactions: counts.Transactions, Committed: counts.Committed, Delivered: r.log.Distinct(), Records: r.log.Len(),
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// done reports whether each row is at its end and, if that is sent, was consumed.
func (r *run) done(ctx context.Context) (bool, error) {
	if r.log.Distinct() < r.ledger.Counts().Committed {
		return false, nil
	}
	rows, err := r.rows(ctx)
	if err != nil {
		return false, err
	}
	for i := range rows {
		open := rows[i].Status == outbox.Pending || rows[i].Status == outbox.Failed
		if open || rows[i].Status == outbox.Sent && r.log.Seen(rows[i].MsgID) == 0 {
			return false, nil
		}
	}
	return true, nil
}

func (r *run) judge(ctx context.Context, took time.Duration) (*Report, error) {
	rows, err := r.rows(ctx)
	if err != nil {
		return nil, err
	}
	verdict := oracle.Judge(r.ledger, oracle.Evidence{Records: r.log.Records(), Rows: rows}, oracle.Options{
		Duplicates: true, Retries: true, Source: r.cfg.Source, Examples: 5,
	})
	report := reportOf(verdict, took)
	report.Table, report.Prefix = r.cfg.Table.String(), r.prefix
	return report, nil
}
