package harness

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
)

// Sampler watches the checkpoint while a test runs. Each round it fences what is committed by the binlog's end, reads
// the checkpoint, then what is unsettled in the tables, and asks the server whether the position is a transaction's end.
type Sampler struct {
	// Checkpoint is read from Redis, Primary has the tables, Binlog is the server whose binlog is streamed.
	Checkpoint      *CheckpointReader
	Primary, Binlog *sql.DB
	Flavor          string
	Tables          []string
	Ledger          *oracle.Ledger

	mu      sync.Mutex
	samples []oracle.Sample
	fences  []oracle.Fence
	checked position.Position // the last one whose surroundings were looked at
	inside  string
	// elsewhere is the server before Move: this one can't be asked about its places.
	elsewhere string
}

// sampleEvery is how often the checkpoint is looked at; unsettledLimit bounds the rows of a table that it is held
// against: the oldest are the ones that a checkpoint would pass first.
const (
	sampleEvery    = 100 * time.Millisecond
	unsettledLimit = 100
	roundTimeout   = 5 * time.Second
)

// Start samples until the returned function is called.
func (s *Sampler) Start(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = s.Take(ctx) // a server may be away: that is some tests' point
			case <-ctx.Done():
				return
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(stop)
	return stop
}

// Take takes one sample now.
func (s *Sampler) Take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	s.mu.Lock() // held over I/O: rounds must not overlap, and nobody else waits for it
	defer s.mu.Unlock()
	if s.Binlog == s.Primary { // a replica's binlog may lag, so its end fences nothing
		fence := oracle.Fence{Seq: s.Ledger.Seq()}
		end, err := BinlogEnd(ctx, s.Binlog, s.Flavor)
		if err != nil {
			return err
		}
		fence.File, fence.Pos = end.File, end.Pos
		s.fences = append(s.fences, fence)
	}
	sample, err := s.Checkpoint.Read(ctx)
	if err != nil {
		return err
	}
	if sample.Unsettled, err = workload.Unsettled(ctx, s.Primary, unsettledLimit, s.Tables...); err != nil {
		return err
	}
	if sample.Position != s.checked && (s.elsewhere == "" || sample.Position.Server != s.elsewhere) {
		if s.inside, err = Boundary(ctx, s.Binlog, sample.Position); err != nil {
			return err
		}
		s.checked = sample.Position
	}
	sample.Inside = s.inside
	s.samples = append(s.samples, sample)
	return nil
}

// Evidence returns what was sampled.
func (s *Sampler) Evidence() ([]oracle.Sample, []oracle.Fence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.samples, s.fences
}

// Forget drops what was sampled so far: the binlog or the checkpoint begins anew, and what comes has no order with it.
func (s *Sampler) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples, s.fences, s.checked = nil, nil, position.Position{}
}

// Move goes on with another server. Places in the binlog of the one before have no order with its own.
func (s *Sampler) Move(db *sql.DB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Primary, s.Binlog = db, db
	s.fences, s.elsewhere = nil, s.checked.Server
}

// MoveBinlog goes on with another server as the one whose binlog is streamed.
func (s *Sampler) MoveBinlog(db *sql.DB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Binlog, s.elsewhere = db, s.checked.Server
}

// BinlogEnd returns the server's present binlog end.
func BinlogEnd(ctx context.Context, db *sql.DB, flavor string) (position.Position, error) {
	statement := "SHOW BINARY LOG STATUS"
	if flavor == position.MariaDB {
		statement = "SHOW MASTER STATUS"
	}
	var (
		end    position.Position
		ignore sql.RawBytes
	)
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return end, fmt.Errorf("binlog end: %w", err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return end, fmt.Errorf("binlog end: %w", err)
	}
	into := []any{&end.File, &end.Pos}
	for range len(columns) - len(into) {
		into = append(into, &ignore)
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return end, fmt.Errorf("binlog end: %w", err)
		}
	}
	return end, rows.Err()
}

// errWrongOffset is the server's answer to a position where no event starts, or to a file that it does not have.
const errWrongOffset = 1220

// within are the events that a transaction has after its first: a position before one of them is inside.
var within = []string{
	"Table_map", "Write_rows", "Update_rows", "Delete_rows", "Partial_update", "Xid", "Query", "Annotate_rows", "Rows_query",
	"Transaction_payload", "Intvar", "RAND", "User_var", "XA_prepare",
}

// Boundary returns why a position is no end of a transaction, "" when it is one. The server must write GTID events
// (MySQL 5.7 and later, or MariaDB), since only these mark a transaction's start for certain.
func Boundary(ctx context.Context, db *sql.DB, at position.Position) (string, error) {
	if strings.ContainsAny(at.File, "'\\") || at.Pos < 4 {
		return fmt.Sprintf("no place in a binlog: %s", at), nil
	}
	kind, err := eventAt(ctx, db, at)
	var refused *mysql.MySQLError
	switch {
	case errors.As(err, &refused) && refused.Number == errWrongOffset:
		return refused.Message, nil
	case err != nil:
		return "", fmt.Errorf("event at %s: %w", at, err)
	}
	for _, inner := range within {
		if strings.HasPrefix(kind, inner) {
			return kind + " follows", nil
		}
	}
	return "", nil
}

// eventAt returns the type of the event that starts at a position, "" at the file's end.
func eventAt(ctx context.Context, db *sql.DB, at position.Position) (kind string, err error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SHOW BINLOG EVENTS IN '%s' FROM %d LIMIT 1", at.File, at.Pos))
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	var ignore sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&ignore, &ignore, &kind, &ignore, &ignore, &ignore); err != nil {
			return "", err
		}
	}
	return kind, rows.Err()
}
