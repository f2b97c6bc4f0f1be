package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/outbox-relay/internal/words"
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

// claimed renders the condition of rows under a claim.
func (s *Store) claimed(t *Table, lease time.Duration) string {
	return t.Col(words.ColumnStatus) + "=" + s.Number(outbox.Pending) + " AND " + t.claimed(lease)
}

func (s *Store) selectTopics(t *Table, condition string) string {
	return fmt.Sprintf("SELECT DISTINCT %s FROM %s%s WHERE %s", t.ExactTopic(), t.From(), t.ByDue(), condition)
}

// topics returns the sorted union of what a query finds in each table.
func (s *Store) topics(ctx context.Context, query func(*Table) string) ([]string, error) {
	topics := map[string]bool{}
	for _, table := range s.Tables() {
		err := s.OnTable(ctx, s.scan, "read the open topics of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
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
	pending := t.Col(words.ColumnStatus) + "=" + s.Number(outbox.Pending)
	if !everything {
		pending += " AND " + t.nextRetry().due()
	}
	return strings.Join([]string{
		s.selectTopics(t, t.Col(words.ColumnStatus)+"="+s.Number(outbox.Failed)), s.selectTopics(t, pending), s.selectTopics(t, s.claimed(t, lease)),
	}, " UNION ")
}

// ExactTopic renders the topic so that it compares by its bytes, in UTF-8.
func (t *Table) ExactTopic() string {
	if t.cols[words.ColumnTopic].Binary() {
		return t.Col(words.ColumnTopic)
	}
	return "CAST(CONVERT(" + t.Col(words.ColumnTopic) + " USING utf8mb4) AS BINARY)"
}

// recentRows is how many of each table's newest rows RecentTopics looks at.
const recentRows = 10_000

// RecentTopics returns the topics that the newest rows of each table name, sorted: at a bounded cost, so a topic that has
// had no message for long may be missing. Dead and discarded messages do not count: what they name may be no topic at all.
func (s *Store) RecentTopics(ctx context.Context) ([]string, error) {
	topics := map[string]bool{}
	for _, table := range s.Tables() {
		err := s.OnTable(ctx, s.scan, "read the topics of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			found, err := mysql.Texts(ctx, conn, fmt.Sprintf(
				"SELECT DISTINCT topic FROM (SELECT %s AS topic, %s AS status FROM %s%s ORDER BY %s DESC LIMIT %d) AS some WHERE status NOT IN (%d, %d)",
				t.ExactTopic(), t.Col(words.ColumnStatus), t.From(), t.ByID(), t.Col(words.ColumnID), recentRows,
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
