package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
)

// recentRows is how many of each table's newest rows RecentTopics looks at.
const recentRows = 10_000

// RecentTopics returns the topics that the newest rows of each table name, sorted: at a bounded cost, so a topic that has
// had no message for long may be missing.
func (s *Store) RecentTopics(ctx context.Context) ([]string, error) {
	topics := map[string]bool{}
	for _, table := range s.Tables() {
		err := s.onTable(ctx, s.scan, "read the topics of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			found, err := column1(ctx, conn, fmt.Sprintf("SELECT DISTINCT topic FROM (SELECT %s AS topic FROM %s%s ORDER BY %s DESC LIMIT %d) AS some",
				t.exactTopic(), t.from(), t.byID(), t.col("id"), recentRows))
			for _, topic := range found {
				topics[topic] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(topics)), nil
}
