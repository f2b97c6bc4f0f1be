//go:build !unit

package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
)

// old writes records of a group that are that old.
func (w *world) old(t *testing.T, group string, n int, age time.Duration) {
	t.Helper()
	for i := range n {
		w.exec(t, "INSERT INTO consumed_message (consumer_group, msg_id, consumed_at) VALUES (?, ?, UTC_TIMESTAMP(3) - INTERVAL ? SECOND)",
			group, fmt.Sprintf("old-%s-%d '\\", age, i), int(age.Seconds()))
	}
}

func TestPurgeTakesWhatIsOldAndOwn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		// Sessions of any time zone read and write the same times.
		w.db = w.open(t, func(cfg *mysql.Config) { cfg.Params = map[string]string{"time_zone": "'+08:00'"}; cfg.ParseTime = true })
		in := w.inbox(t, inbox.Config{})
		w.old(t, "points", 25, 7*24*time.Hour+time.Minute)
		w.old(t, "points", 4, 7*24*time.Hour-time.Minute)
		w.old(t, "others", 3, 30*24*time.Hour)
		_, err := in.Do(t.Context(), message("new"), write("new"))
		require.NoError(t, err)

		done, err := in.Purge(t.Context(), inbox.PurgeOptions{Batch: 10, Pause: time.Millisecond})
		require.NoError(t, err)
		assert.Equal(t, int64(25), done.Rows)
		assert.Equal(t, 3, done.Batches)
		assert.Equal(t, 5, w.count(t, "SELECT COUNT(*) FROM consumed_message WHERE consumer_group = 'points'"))
		assert.Equal(t, 3, w.count(t, "SELECT COUNT(*) FROM consumed_message WHERE consumer_group = 'others'"))
		done, err = in.Purge(t.Context(), inbox.PurgeOptions{})
		require.NoError(t, err)
		assert.Zero(t, done.Rows)
		assert.Zero(t, done.Batches)

		done, err = in.Purge(t.Context(), inbox.PurgeOptions{Keep: 24 * time.Hour, Replays: 24 * time.Hour})
		require.NoError(t, err)
		assert.Equal(t, int64(4), done.Rows, "a shorter time to keep, since replays are said to be shorter")
	})
}

// A purge that meets a delivery of an old message neither waits for it nor takes its new record.
func TestPurgeDoesNotHoldUpHandlers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		in := w.inbox(t, inbox.Config{})
		w.old(t, "points", 50, 8*24*time.Hour)
		result, err := in.Do(t.Context(), message("m-1"), func(ctx context.Context, tx *sql.Tx) error {
			done, err := in.Purge(ctx, inbox.PurgeOptions{Batch: 20})
			assert.Equal(t, int64(50), done.Rows)
			if err != nil {
				return err
			}
			return write("m-1")(ctx, tx)
		})
		require.NoError(t, err)
		assert.Equal(t, inbox.Handled, result)
		assert.Equal(t, 1, w.records(t))
	})
}

func TestPurgeStopsWithItsContext(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		w.old(t, "points", 5, 8*24*time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := w.inbox(t, inbox.Config{}).Purge(ctx, inbox.PurgeOptions{})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 5, w.records(t))
	})
}

// The rows are found in the index alone and deleted by primary key.
func TestPurgeUsesItsIndexes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		w.old(t, "points", 20, 8*24*time.Hour)
		for query, want := range map[string]string{
			"SELECT msg_id FROM consumed_message FORCE INDEX (idx_group_consumed) WHERE consumer_group = 'points' AND consumed_at < UTC_TIMESTAMP(3) ORDER BY consumed_at LIMIT 10": "idx_group_consumed",
			"DELETE m FROM consumed_message AS m FORCE INDEX (PRIMARY) WHERE consumer_group = 'points' AND consumed_at < UTC_TIMESTAMP(3) AND msg_id IN ('a', 'b')":                 "PRIMARY",
		} {
			rows, err := w.db.QueryContext(t.Context(), "EXPLAIN FORMAT=TRADITIONAL "+query)
			require.NoError(t, err)
			plan := onlyRow(t, rows)
			assert.Equal(t, want, plan["key"])
			assert.NotContains(t, plan["Extra"], "filesort")
		}
	})
}

// onlyRow reads one row by its columns' names.
func onlyRow(t *testing.T, rows *sql.Rows) map[string]string {
	t.Helper()
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	values := make([]sql.NullString, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(targets...))
	require.False(t, rows.Next())
	require.NoError(t, rows.Err())
	row := map[string]string{}
	for i, column := range columns {
		row[column] = values[i].String
	}
	return row
}
