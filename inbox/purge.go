package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/outbox-relay/retry"
)

// PurgeOptions say what a purge may forget.
type PurgeOptions struct {
	// Keep is the age up to which records stay. Default: Replays.
	Keep time.Duration
	// Replays is the longest time after which a message may come again: the longest of the topic's retention
	// (retention.ms), the relay's binlog retention (binlog_expire_logs_seconds), and how far back anybody would reset the
	// group's offsets or resend by hand. Default: MinReplays. Where the true figure is smaller, saying so here allows a
	// shorter Keep; that is on purpose the only way to it.
	Replays time.Duration
	// Batch is how many records one transaction deletes. Default 1000.
	Batch int
	// Pause is the time between two batches. Default 10 ms.
	Pause time.Duration
}

// MinReplays is how long messages are expected to come again where nothing else is said: Kafka's default retention.
const MinReplays = 7 * 24 * time.Hour

const (
	defaultBatch = 1000
	maxBatch     = 10_000
	defaultPause = 10 * time.Millisecond
)

// Purged says what a purge did.
type Purged struct {
	Rows    int64
	Batches int
	// Cutoff is the server's time, in UTC, before which records were deleted.
	Cutoff string
}

// Purge deletes this group's records that are older than Keep, oldest first, and returns when none is left. Each batch is
// found in the index, without locks, and deleted by primary key in a short READ COMMITTED transaction, so handlers are not
// held up. It may be stopped at any time, run beside others, and repeated; what was deleted until then is in Purged.
//
// A message whose record is gone would be handled again if it came again. So a Keep shorter than Replays is refused
// (ErrHorizon).
func (in *Inbox) Purge(ctx context.Context, opts PurgeOptions) (Purged, error) {
	opts, err := opts.complete()
	if err != nil {
		return Purged{}, fmt.Errorf("purge %s: %w", in.table, err)
	}
	var done Purged
	row := in.db.QueryRowContext(ctx, fmt.Sprintf("SELECT CAST(UTC_TIMESTAMP(3) - INTERVAL %d SECOND AS CHAR)", seconds(opts.Keep)))
	if err := row.Scan(&done.Cutoff); err != nil {
		return done, in.failed(ctx, "ask the server's time", err)
	}
	pause := retry.Doubling(pauseLeast, pauseMost).Attempts()
	for tries := 1; ; {
		found, deleted, err := in.purgeBatch(ctx, done.Cutoff, opts.Batch)
		if blocked(in.number(err)) && tries < in.tries {
			tries++
			if err := retry.Wait(ctx, pause.Next()); err != nil {
				return done, fmt.Errorf("purge %s: %w", in.table, err)
			}
			continue
		}
		if err != nil {
			return done, in.failed(ctx, "purge "+in.table, err)
		}
		tries = 1
		done.Rows += deleted
		if found > 0 {
			done.Batches++
		}
		if found < opts.Batch {
			return done, nil
		}
		if err := retry.Wait(ctx, opts.Pause); err != nil {
			return done, fmt.Errorf("purge %s: %w", in.table, err)
		}
	}
}

func (o PurgeOptions) complete() (PurgeOptions, error) {
	var errs []error
	if o.Keep < 0 || o.Replays < 0 || o.Pause < 0 {
		errs = append(errs, errors.New("a time is negative"))
	}
	if o.Batch < 0 || o.Batch > maxBatch {
		errs = append(errs, fmt.Errorf("batch is %d: it must be from 1 to %d, or 0 for %d", o.Batch, maxBatch, defaultBatch))
	}
	if o.Replays == 0 {
		o.Replays = MinReplays
	}
	if o.Keep == 0 {
		o.Keep = o.Replays
	}
	if o.Batch == 0 {
		o.Batch = defaultBatch
	}
	if o.Pause == 0 {
		o.Pause = defaultPause
	}
	if o.Keep < o.Replays {
		errs = append(errs, fmt.Errorf("%w: keep is %s and messages may come again for %s; keep records longer, or set Replays to the "+
			"longest of the topic's retention, the binlog's retention and the oldest replay by hand", ErrHorizon, o.Keep, o.Replays))
	}
	return o, errors.Join(errs...)
}

// seconds rounds up: a purge must not take more than it was allowed to.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// purgeBatch deletes the oldest records. The rows are looked up first and deleted by primary key: a DELETE by the
// index would lock its ranges.
func (in *Inbox) purgeBatch(ctx context.Context, cutoff string, limit int) (found int, deleted int64, err error) {
	where := " WHERE consumer_group = " + literal(in.group) + " AND consumed_at < '" + cutoff + "'"
	ids, err := in.oldIDs(ctx, fmt.Sprintf("SELECT msg_id FROM %s FORCE INDEX (idx_group_consumed)%s ORDER BY consumed_at LIMIT %d",
		quoteTable(in.table), where, limit))
	if err != nil || len(ids) == 0 {
		return 0, 0, err
	}
	tx, err := in.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return len(ids), 0, err
	}
	// The time once more: a record may have been deleted by another and written anew since it was looked up.
	result, err := tx.ExecContext(ctx, "DELETE m FROM "+quoteTable(in.table)+" AS m FORCE INDEX (PRIMARY)"+where+" AND msg_id IN ("+strings.Join(ids, ", ")+")")
	if err != nil {
		return len(ids), 0, errors.Join(err, tx.Rollback())
	}
	if deleted, err = result.RowsAffected(); err != nil {
		return len(ids), 0, errors.Join(err, tx.Rollback())
	}
	return len(ids), deleted, tx.Commit()
}

// oldIDs returns the ids as literals.
func (in *Inbox) oldIDs(ctx context.Context, query string) ([]string, error) {
	rows, err := in.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, literal(id))
	}
	return ids, rows.Err()
}
