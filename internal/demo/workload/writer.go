package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"example.com/outbox-relay/internal/oracle"
)

// Writer writes by its Config until enough rows are committed or its context ends.
type Writer struct {
	db     *sql.DB
	cfg    Config
	ledger *oracle.Ledger

	mu     sync.Mutex
	left   int // rows not yet committed nor in somebody's hands, when cfg.Rows bounds the run
	begun  int // transactions that ended or are in somebody's hands, when cfg.Transactions bounds the run
	stats  Stats
	lastOK time.Time
}

// Stats sum up a run; the ledger has the rest.
type Stats struct {
	Rows      int // committed
	Errors    int // transactions that failed, whatever their outcome
	LastError error
	Elapsed   time.Duration
}

// New returns a writer that enters what it does into the ledger.
func New(db *sql.DB, cfg Config, ledger *oracle.Ledger) (*Writer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	return &Writer{db: db, cfg: cfg, ledger: ledger, left: cfg.Rows}, nil
}

// Prepare creates the tables that are missing.
func (w *Writer) Prepare(ctx context.Context) error {
	if w.cfg.Orders != "" {
		if err := CreateOrders(ctx, w.db, w.cfg.Orders); err != nil {
			return err
		}
	}
	for _, table := range w.cfg.Tables {
		if err := CreateMessages(ctx, w.db, table, w.cfg.Key == KeyColumn || w.cfg.Headers > 0); err != nil {
			return err
		}
	}
	return nil
}

// Run writes until the rows are committed or the context ends, which is no error; transactions under way are finished
// first. It fails when nothing succeeds for as long as the patience lasts.
func (w *Writer) Run(ctx context.Context) (Stats, error) {
	begun := time.Now()
	w.mu.Lock()
	w.lastOK = begun
	w.mu.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		all  sync.WaitGroup
		errs = make([]error, w.cfg.Writers)
	)
	for i := range w.cfg.Writers {
		all.Go(func() {
			one := session{w: w, gen: generator{cfg: &w.cfg, writer: i, rnd: rand.New(rand.NewPCG(w.cfg.Seed, uint64(i)))}}
			if errs[i] = one.run(ctx); errs[i] != nil {
				stop()
			}
		})
	}
	all.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Elapsed = time.Since(begun)
	return w.stats, errors.Join(errs...)
}

// take hands out up to n of the rows still to be committed.
func (w *Writer) take(n int) int {
	if w.cfg.Rows == 0 {
		return n
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n = min(n, w.left)
	w.left -= n
	return n
}

// begin hands out one of the transactions still to be done.
func (w *Writer) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cfg.Transactions > 0 && w.begun >= w.cfg.Transactions {
		return false
	}
	w.begun++
	return true
}

// done counts a transaction and takes back the rows that it did not commit.
func (w *Writer) done(taken, committed int, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Rows += committed
	w.left += taken - committed
	if err == nil {
		w.lastOK = time.Now()
		return nil
	}
	w.begun--
	w.stats.Errors++
	w.stats.LastError = err
	if time.Since(w.lastOK) > w.cfg.Patience {
		return fmt.Errorf("no transaction succeeded for %s: %w", w.cfg.Patience, err)
	}
	return nil
}
