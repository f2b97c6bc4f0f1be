package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/outbox-relay/outbox"
)

// ClosedTopics returns the topics that must not be streamed before the table has been drained of them: those with a
// failed row, or with a pending row whose next_retry_time is set and not later than the lease from now (deferred, or
// claimed by a process that died). With everything, also those with any other pending row: without a usable position what
// is new in the stream must wait behind what is old in the table. Topics are sorted.
func (s *Store) ClosedTopics(ctx context.Context, lease time.Duration, everything bool) ([]string, error) {
	topics := map[string]bool{}
	for _, table := range s.Tables() {
		err := s.onTable(ctx, s.scan, "read the open topics of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			found, err := column1(ctx, conn, s.topicsQuery(t, lease, everything))
			for _, topic := range found {
				topics[topic] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	sorted := make([]string, 0, len(topics))
	for topic := range topics {
		sorted = append(sorted, topic)
	}
	slices.Sort(sorted)
	return sorted, nil
}

// topicsQuery reads each range of the index once. Names that differ in case only are different topics to Kafka, whatever
// the column's collation says.
func (s *Store) topicsQuery(t *Table, lease time.Duration, everything bool) string {
	due := t.col("next_retry_time")
	pending := t.col("status") + "=" + s.numberText(outbox.Pending)
	if !everything {
		pending += " AND " + due + "<=NOW()+" + interval(lease)
	}
	var parts []string
	for _, condition := range []string{t.col("status") + "=" + s.numberText(outbox.Failed), pending} {
		parts = append(parts, fmt.Sprintf("SELECT DISTINCT %s FROM %s%s WHERE %s", t.exactTopic(), t.from(), t.byDue(), condition))
	}
	return strings.Join(parts, " UNION ")
}

// exactTopic renders the topic so that it compares by its bytes, in UTF-8.
func (t *Table) exactTopic() string {
	if t.cols["topic"].binary() {
		return t.col("topic")
	}
	return "CAST(CONVERT(" + t.col("topic") + " USING utf8mb4) AS BINARY)"
}
