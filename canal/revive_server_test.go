//go:build !unit

package canal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

// TestUpdatesByHandAreTold: whatever makes a row due from outside kicks a sweep and names the row, in every form that the
// binlog has for it. The relay's own updates, which come by the thousand, do not.
func TestUpdatesByHandAreTold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.insert("a")
		b.stream()
		id := b.id("a")
		const ahead = "next_retry_time = NOW() + INTERVAL 1 HOUR"
		for _, image := range []string{"FULL", "MINIMAL", "NOBLOB"} {
			for _, tc := range []struct {
				name, from, update string
				told               bool
			}{
				{"sent again", "status = 1", "status = 0", true},
				{"consumed, sent again", "status = 3, " + ahead, "status = 0, next_retry_time = NULL", true},
				{"dead, pending", "status = 4, retry_count = 17", "status = 0", true},
				{"dead, failed with its count", "status = 4, retry_count = 17", "status = 2", true},
				{"dead, failed with its count, due", "status = 4, retry_count = 17", "status = 2, next_retry_time = NOW()", true},
				{"pending, failed", "status = 0, retry_count = 0", "status = 2", true},
				{"sent, failed", "status = 1, retry_count = 0", "status = 2", true},
				{"failed, pending and due", "status = 2, retry_count = 3, " + ahead, "status = 0, next_retry_time = NULL", true},
				{"failed, pending as it is due", "status = 2, retry_count = 3, " + ahead, "status = 0", true},
				{"failed, due at once", "status = 2, retry_count = 3, " + ahead, "next_retry_time = NULL", true},
				{"delayed, due at once", "status = 0, " + ahead, "next_retry_time = NULL", true},
				{"an operator's retry", "status = 4, retry_count = 17", "status = 2, retry_count = 0, next_retry_time = NOW()", true},
				{"a retry of a failed one", "status = 2, retry_count = 3, " + ahead, "retry_count = 0, status = 2, next_retry_time = NOW()", true},
				{"mark", "status = 0", "status = 1, update_time = NOW()", false},
				{"failure", "status = 0, retry_count = 0", "status = 2, retry_count = retry_count + 1, " + ahead, false},
				{"another failure", "status = 2, retry_count = 3", "status = 2, retry_count = retry_count + 1, " + ahead, false},
				{"claim", "status = 2, retry_count = 3", ahead + ", update_time = NOW()", false},
				{"claim of a pending one", "status = 0, retry_count = 0", ahead + ", update_time = NOW()", false},
				{"deferral", "status = 0", "next_retry_time = NOW()", false},
				{"dead letter", "status = 2, retry_count = 3, " + ahead, "status = 4, next_retry_time = NULL", false},
				{"report", "status = 1", "status = 3", false},
			} {
				b.exec("UPDATE local_message SET status = 9, retry_count = 0, next_retry_time = NULL", "UPDATE local_message SET "+tc.from)
				b.read()
				b.session("SET SESSION binlog_row_image = "+image, "UPDATE local_message SET "+tc.update)
				g := b.read()
				want := []uint64(nil)
				if tc.told {
					want = []uint64{id}
				}
				require.Equal(t, want, g.revived, "%s, %s", image, tc.name)
				require.Equal(t, len(want), g.kicks, "%s, %s", image, tc.name)
			}
		}
	})
}

// TestManyUpdatesByHandAreCounted: not each of a million rows is named.
func TestManyUpdatesByHandAreCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		b.exec("INSERT INTO local_message (msg_id, topic, msg_content, status, create_time, update_time)" +
			" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT CONCAT('m', i), 't', 'x', 1, NOW(), NOW() FROM n")
		b.exec("INSERT INTO local_message (msg_id, topic, msg_content, status, create_time, update_time) SELECT CONCAT(msg_id, 'x'), 't', 'x', 1, NOW(), NOW() FROM local_message LIMIT 200")
		b.read()
		b.session("BEGIN", "SAVEPOINT s", "UPDATE local_message SET status = 0 LIMIT 10", "ROLLBACK TO s", "UPDATE local_message SET status = 0", "COMMIT")
		g := b.read()
		require.Len(t, g.revived, 1000)
		require.Equal(t, 200, g.more)
		require.Equal(t, 1, g.kicks)
		require.Empty(t, g.rows)
	})
}

// TestAlteredTablesAreTold: a partition exchange brings rows without a row event.
func TestAlteredTablesAreTold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.exec("DROP TABLE local_message", fmt.Sprintf(partitioned, "local_message")+" PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (1000), PARTITION p1 VALUES LESS THAN MAXVALUE)",
			fmt.Sprintf(partitioned, "staging"))
		b.stream()
		b.exec("INSERT INTO staging (id, msg_id, topic, msg_content, status, create_time, update_time) VALUES (5, 'm', 't', 'x', 0, NOW(), NOW())")
		require.Zero(t, b.read().kicks)
		b.exec("DELETE FROM local_message", "ALTER TABLE local_message EXCHANGE PARTITION p0 WITH TABLE staging")
		g := b.read()
		require.Equal(t, 1, g.altered)
		require.Equal(t, 1, g.kicks)
		require.Empty(t, g.rows)
	})
}

// partitioned is the table without the unique key, which a partitioned one can't have.
const partitioned = `CREATE TABLE %s (id BIGINT AUTO_INCREMENT PRIMARY KEY, msg_id VARCHAR(64) NOT NULL, topic VARCHAR(64) NOT NULL,
	msg_content TEXT NOT NULL, status TINYINT NOT NULL, retry_count INT DEFAULT 0, next_retry_time DATETIME, create_time DATETIME NOT NULL,
	update_time DATETIME NOT NULL, KEY idx_status_retry (status, next_retry_time))`

func (b *bench) id(msgID string) (id uint64) {
	b.t.Helper()
	require.NoError(b.t, b.db.QueryRowContext(b.t.Context(), "SELECT id FROM local_message WHERE msg_id = ?", msgID).Scan(&id))
	return id
}
