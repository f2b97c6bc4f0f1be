package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// recentRows is how many of each table's newest rows RecentTopics looks at.
const recentRows = 10_000

// RecentTopics returns the topics that the newest rows of each table name, sorted: at a bounded cost, so a topic that has
// had no message for long may be missing. Dead and discarded messages do not count: what they name may be no topic at all.
func (s *Store) RecentTopics(ctx context.Context) ([]string, error) {
	topics := map[string]bool{}
	for _, table := range s.Tables() {
		err := s.onTable(ctx, s.scan, "read the topics of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			found, err := mysql.Texts(ctx, conn, fmt.Sprintf(
				"SELECT DISTINCT topic FROM (SELECT %s AS topic, %s AS status FROM %s%s ORDER BY %s DESC LIMIT %d) AS some WHERE status NOT IN (%d, %d)",
				t.exactTopic(), t.col("status"), t.from(), t.byID(), t.col("id"), recentRows,
				s.number(outbox.Dead), s.number(outbox.Discarded)))
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
