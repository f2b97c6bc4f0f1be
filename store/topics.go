package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// ClosedTopics returns the topics that must not be streamed before the table has been drained of them: those with a
// failed row, with a due pending row whose next_retry_time is set (deferred), or with a pending row that a process may have
// claimed and died. With everything, also those with any other pending row: without a usable position what
// is new in the stream must wait behind what is old in the table. Topics are sorted.
func (s *Store) ClosedTopics(ctx context.Context, lease time.Duration, everything bool) ([]string, error) {
	return s.topics(ctx, func(t *Table) string { return s.topicsQuery(t, lease, everything) })
}

// ClaimedTopics returns the topics with a pending row that a process may have claimed and died: its next_retry_time is the
// lease after its update_time. Topics are sorted.
func (s *Store) ClaimedTopics(ctx context.Context, lease time.Duration) ([]string, error) {
	return s.topics(ctx, func(t *Table) string { return s.selectTopics(t, s.claimed(t, lease)) })
}

// claimed renders the condition of rows under a claim. A delayed message that nobody has claimed lies in the same range of
// the index, but its two times are as its writer has set them.
func (s *Store) claimed(t *Table, lease time.Duration) string {
	due, updated := t.col("next_retry_time"), t.col("update_time")
	seconds := int64(lease / time.Second)
	return fmt.Sprintf("%s=%s AND %s>NOW() AND %s<=NOW()+%s AND TIMESTAMPDIFF(SECOND,%s,%s) BETWEEN %d AND %d",
		t.col("status"), s.numberText(outbox.Pending), due, due, mysql.Interval(lease), updated, due, seconds-1, seconds+1)
}

func (s *Store) selectTopics(t *Table, condition string) string {
	return fmt.Sprintf("SELECT DISTINCT %s FROM %s%s WHERE %s", t.exactTopic(), t.from(), t.byDue(), condition)
}

// topics returns the sorted union of what a query finds in each table.
func (s *Store) topics(ctx context.Context, query func(*Table) string) ([]string, error) {
	topics := map[string]bool{}
	for _, table := range s.Tables() {
		err := s.onTable(ctx, s.scan, "read the open topics of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			found, err := mysql.Texts(ctx, conn, query(t))
			for _, topic := range found {
				topics[topic] = true
			}
			return err
		})
		if unlessGone(err) != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(topics)), nil
}

// topicsQuery reads each range of the index once. Names that differ in case only are different topics to Kafka, whatever
// the column's collation says.
func (s *Store) topicsQuery(t *Table, lease time.Duration, everything bool) string {
	due := t.col("next_retry_time")
	pending := t.col("status") + "=" + s.numberText(outbox.Pending)
	if !everything {
		pending += " AND " + due + "<=NOW()"
	}
	return strings.Join([]string{
		s.selectTopics(t, t.col("status")+"="+s.numberText(outbox.Failed)), s.selectTopics(t, pending), s.selectTopics(t, s.claimed(t, lease)),
	}, " UNION ")
}

// exactTopic renders the topic so that it compares by its bytes, in UTF-8.
func (t *Table) exactTopic() string {
	if t.cols["topic"].Binary() {
		return t.col("topic")
	}
	return "CAST(CONVERT(" + t.col("topic") + " USING utf8mb4) AS BINARY)"
}

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
