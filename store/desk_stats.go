package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

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
