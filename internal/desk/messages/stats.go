package messages

import (
	"context"

	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/store"
)

// Stats is the outbox at a glance.
type Stats struct {
	Cap    int64        `json:"counted_up_to"`
	Tables []TableStats `json:"tables"`
}

// TableStats are the numbers of one table.
type TableStats struct {
	Table                string           `json:"table"`
	Counts               map[string]int64 `json:"counts"`
	OldestPendingSeconds float64          `json:"oldest_pending_seconds"`
	Topics               []TopicStats     `json:"topics"`
}

// TopicStats are the unfinished rows of one topic and status.
type TopicStats struct {
	Topic         string  `json:"topic"`
	Status        string  `json:"status"`
	Messages      int64   `json:"messages"`
	OldestSeconds float64 `json:"oldest_seconds"`
	MostRetries   int64   `json:"most_retries"`
}

// Count counts the rows of each table by status, and the unfinished ones by topic.
func Count(ctx context.Context, rows *store.Store) (Stats, error) {
	stats, err := rows.Stats(ctx)
	if err != nil {
		return Stats{}, err
	}
	view := Stats{Cap: store.CountCap, Tables: []TableStats{}}
	for _, t := range stats.Tables {
		one := TableStats{
			Table: t.Table.String(), Counts: map[string]int64{}, OldestPendingSeconds: human.Seconds(t.OldestPending),
			Topics: []TopicStats{},
		}
		for status, n := range t.Counts {
			one.Counts[status.String()] = n
		}
		for _, topic := range t.Topics {
			one.Topics = append(one.Topics, TopicStats{
				Topic: topic.Topic, Status: topic.Status.String(), Messages: topic.Messages,
				OldestSeconds: human.Seconds(topic.Oldest), MostRetries: topic.Retries,
			})
		}
		view.Tables = append(view.Tables, one)
	}
	return view, nil
}
