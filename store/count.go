package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// CountCap is where Count stops counting: a status with that many rows has "that many or more".
const CountCap = 100_000

// Count returns how many rows each status has, at most CountCap of each in each table, and the age of the oldest pending
// row. Its cost is bounded whatever the size of the table: it reads the index, and each status' first entries only.
func (s *Store) Count(ctx context.Context) (counts map[outbox.Status]int64, oldestPending time.Duration, err error) {
	counts = map[outbox.Status]int64{}
	for _, table := range s.Tables() {
		var age time.Duration
		part := map[outbox.Status]int64{}
		err := s.OnTable(ctx, s.scan, "count rows of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) (err error) {
			for status := range outbox.Foreign {
				if part[status], err = s.countStatus(ctx, conn, t, status); err != nil {
					return err
				}
			}
			age, err = s.oldestAge(ctx, conn, t)
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		for status, n := range part {
			counts[status] += n
		}
		oldestPending = max(oldestPending, age)
	}
	return counts, oldestPending, nil
}

func (s *Store) countStatus(ctx context.Context, conn *sql.Conn, t *Table, status outbox.Status) (int64, error) {
	var n int64
	query := fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 FROM %s%s WHERE %s=%s LIMIT %d) AS some",
		t.From(), t.ByDue(), t.Col(words.ColumnStatus), s.Number(status), CountCap)
	return n, conn.QueryRowContext(ctx, query).Scan(&n)
}

// oldestAge looks at the head of both ranges of pending rows: without a next_retry_time by id, with one by that time.
func (s *Store) oldestAge(ctx context.Context, conn *sql.Conn, t *Table) (time.Duration, error) {
	var oldest time.Duration
	next := t.nextRetry()
	for _, part := range []string{next.none() + " ORDER BY " + t.Col(words.ColumnID), next.due() + " ORDER BY " + string(next)} {
		var seconds sql.NullInt64
		err := conn.QueryRowContext(ctx, fmt.Sprintf("SELECT TIMESTAMPDIFF(SECOND, %s, NOW()) FROM %s%s WHERE %s=%s AND %s LIMIT 1",
			t.Col(words.ColumnCreateTime), t.From(), t.ByDue(), t.Col(words.ColumnStatus), s.Number(outbox.Pending), part)).Scan(&seconds)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, err
		}
		oldest = max(oldest, time.Duration(seconds.Int64)*time.Second)
	}
	return oldest, nil
}

// Stats is the outbox at a glance.
type Stats struct {
	Tables []TableStats
}

// TableStats is one table's part.
type TableStats struct {
	Table outbox.Table
	// Counts has every status; CountCap means that many or more.
	Counts map[outbox.Status]int64
	// OldestPending is the age of the oldest pending row.
	OldestPending time.Duration
	// Topics tells of the messages that are not done: pending, failed and dead ones.
	Topics []TopicStats
}

// TopicStats counts the unfinished messages of one topic and status, among the first CountCap of that status.
type TopicStats struct {
	Topic    string
	Status   outbox.Status
	Messages int64
	// Oldest is the age of the oldest; Retries the most failures that one of them has had.
	Oldest  time.Duration
	Retries int64
}

// Stats counts, at a bounded cost.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	var stats Stats
	for _, table := range s.Tables() {
		ts := TableStats{Table: table.Table}
		err := s.OnTable(ctx, s.scan, "count rows of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) (err error) {
			ts.Counts, ts.Topics = map[outbox.Status]int64{}, nil
			for status := range outbox.Foreign {
				if ts.Counts[status], err = s.countStatus(ctx, conn, t, status); err != nil {
					return err
				}
			}
			for _, status := range []outbox.Status{outbox.Pending, outbox.Failed, outbox.Dead} {
				topics, err := s.topicStats(ctx, conn, t, status)
				if err != nil {
					return err
				}
				ts.Topics = append(ts.Topics, topics...)
			}
			ts.OldestPending, err = s.oldestAge(ctx, conn, t)
			return err
		})
		if err != nil {
			return Stats{}, err
		}
		stats.Tables = append(stats.Tables, ts)
	}
	return stats, nil
}

func (s *Store) topicStats(ctx context.Context, conn *sql.Conn, t *Table, status outbox.Status) ([]TopicStats, error) {
	query := fmt.Sprintf("SELECT topic, COUNT(*), COALESCE(MAX(age),0), COALESCE(MAX(retries),0) FROM"+
		" (SELECT %s AS topic, TIMESTAMPDIFF(SECOND, %s, NOW()) AS age, %s AS retries FROM %s%s WHERE %s=%s LIMIT %d) AS some GROUP BY topic ORDER BY 2 DESC, 1 LIMIT 1000",
		t.ExactTopic(), t.Col(words.ColumnCreateTime), t.Col(words.ColumnRetryCount), t.From(), t.ByDue(), t.Col(words.ColumnStatus), s.Number(status), CountCap)
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	var topics []TopicStats
	for rows.Next() {
		ts := TopicStats{Status: status}
		var seconds int64
		if err := rows.Scan(&ts.Topic, &ts.Messages, &seconds, &ts.Retries); err != nil {
			return nil, err
		}
		ts.Oldest = max(time.Duration(seconds)*time.Second, 0)
		topics = append(topics, ts)
	}
	return topics, rows.Err()
}
