//go:build !unit

package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/rig"
)

func TestPutWritesTheWholeRow(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		trace := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		b := box(t, outbox.Config{TraceParent: func(context.Context) string { return trace }})
		receipts := d.put(t, b,
			outbox.Message{ID: "order-1-paid", Topic: "orders", Key: "1", Body: []byte(` {"a": 1}`), Headers: map[string]string{"b": "2", "a": "1"}},
			outbox.Message{Topic: "mail", Body: "x"})
		assert.Equal(t, [][]string{
			{"order-1-paid", "orders", ` {"a": 1}`, "0", "0", "NULL", "1", `{"a":"1","b":"2"}`, trace, "NULL"},
			{receipts[1].ID, "mail", `"x"`, "0", "0", "NULL", "NULL", "NULL", trace, "NULL"},
		}, d.rows(t, `SELECT msg_id, topic, msg_content, status, retry_count, next_retry_time, msg_key, headers, trace_parent, last_error
			FROM local_message ORDER BY id`))
		assert.Equal(t, "2", d.column(t, "SELECT COUNT(*) FROM local_message WHERE create_time = update_time AND create_time BETWEEN NOW() - INTERVAL 1 MINUTE AND NOW()")[0])
	})
}

func TestPutIntoThePatternsTable(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDeskWith(t, srv, outbox.Schema(outbox.Table{Name: plainTable}, outbox.SchemaOptions{}))
		require.NoError(t, outbox.Within(t.Context(), d.DB, func(ctx context.Context, tx *sql.Tx) error {
			_, err := outbox.Put(ctx, tx, outbox.Message{ID: "a", Topic: "orders", Body: 1, NotBefore: time.Now().Add(time.Hour)})
			require.NoError(t, err)
			_, err = outbox.PutAll(ctx, tx, []outbox.Message{{ID: "b", Topic: "orders", Body: 1}, {ID: "c", Topic: "orders", Body: 1}})
			return err
		}))
		assert.Equal(t, []string{"a", "b", "c"}, d.ids(t))
	})
}

// TestRollbackLeavesNothing: by an error, a panic, an ended context, and a message that is refused.
func TestRollbackLeavesNothing(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d, b, mine := newDesk(t, srv), box(t, outbox.Config{}), errors.New("mine")
		write := func(ctx context.Context, tx *sql.Tx) error {
			_, err := b.Put(ctx, tx, outbox.Message{ID: "a", Topic: "orders", Body: 1})
			require.NoError(t, err)
			_, err = b.PutAll(ctx, tx, []outbox.Message{{Topic: "orders", Body: 1}, {Topic: "orders", Body: 2}})
			return err
		}
		require.ErrorIs(t, outbox.Within(t.Context(), d.DB, func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(write(ctx, tx), mine)
		}), mine)
		assert.Panics(t, func() {
			_ = outbox.Within(t.Context(), d.DB, func(ctx context.Context, tx *sql.Tx) error {
				require.NoError(t, write(ctx, tx))
				panic(mine)
			})
		})
		ctx, cancel := context.WithCancel(t.Context())
		require.ErrorIs(t, outbox.Within(ctx, d.DB, func(ctx context.Context, tx *sql.Tx) error {
			require.NoError(t, write(ctx, tx))
			cancel()
			return ctx.Err()
		}), context.Canceled)
		require.ErrorIs(t, outbox.Within(t.Context(), d.DB, func(ctx context.Context, tx *sql.Tx) error {
			require.NoError(t, write(ctx, tx))
			_, err := b.Put(ctx, tx, outbox.Message{Topic: "no topic", Body: 1})
			return err
		}), outbox.ErrInvalid)
		assert.Empty(t, d.ids(t))
		d.put(t, b, outbox.Message{ID: "a", Topic: "orders", Body: 1})
		assert.Equal(t, []string{"a"}, d.ids(t), "the id is free")
	})
}

func TestSavepointsTakeMessagesBack(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d, b := newDesk(t, srv), box(t, outbox.Config{})
		tx := d.begin(t)
		put := func(id string) outbox.Receipt {
			receipt, err := b.Put(t.Context(), tx, outbox.Message{ID: id, Topic: "orders", Body: 1})
			require.NoError(t, err)
			return receipt
		}
		run := func(statement string) {
			_, err := tx.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		put("a")
		run("SAVEPOINT s")
		put("b")
		assert.True(t, put("a").Duplicate)
		run("ROLLBACK TO SAVEPOINT s")
		assert.False(t, put("c").Duplicate)
		assert.False(t, put("b").Duplicate, "it was taken back")
		require.NoError(t, tx.Commit())
		assert.Equal(t, []string{"a", "c", "b"}, d.ids(t))
	})
}

// TestOptionalColumnsAreUsedWhereTheyExist, one by one, and nothing that a message has is dropped in silence.
func TestOptionalColumnsAreUsedWhereTheyExist(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDeskWith(t, srv, outbox.Schema(outbox.Table{Name: plainTable}, outbox.SchemaOptions{}))
		b := box(t, outbox.Config{TraceParent: func(context.Context) string { return "00-t-s-01" }})
		key := outbox.Message{Topic: "orders", Body: 1, Key: "k"}
		headers := outbox.Message{Topic: "orders", Body: 1, Headers: map[string]string{"a": "b"}}
		refused := func(m outbox.Message, repair string) {
			t.Helper()
			for range 2 {
				tx := d.begin(t)
				_, err := b.Put(t.Context(), tx, m)
				require.ErrorIs(t, err, outbox.ErrNoColumn)
				require.ErrorContains(t, err, repair)
				_, err = b.PutAll(t.Context(), tx, []outbox.Message{{Topic: "orders", Body: 1}, m})
				require.ErrorIs(t, err, outbox.ErrNoColumn)
				require.NoError(t, tx.Rollback())
			}
		}
		const addKey, addHeaders = "ALTER TABLE `local_message` ADD COLUMN `msg_key` VARCHAR(255) NULL", "ALTER TABLE `local_message` ADD COLUMN `headers` TEXT NULL"
		refused(key, addKey)
		refused(headers, addHeaders)
		d.put(t, b, outbox.Message{ID: "bare", Topic: "orders", Body: 1})
		d.exec(t, addKey)
		d.put(t, b, key)
		refused(headers, addHeaders)
		d.exec(t, addHeaders)
		d.put(t, b, headers)
		assert.JSONEq(t, `{"traceparent":"00-t-s-01","a":"b"}`, d.column(t, "SELECT headers FROM local_message WHERE headers IS NOT NULL")[0],
			"no column for the trace, so it is among the headers")
		d.exec(t, "ALTER TABLE local_message ADD COLUMN trace_parent VARCHAR(64) NULL")
		again := box(t, outbox.Config{TraceParent: func(context.Context) string { return "00-t-s-02" }})
		d.put(t, again, headers)
		assert.Equal(t, [][]string{{`{"a":"b"}`, "00-t-s-02"}}, d.rows(t, "SELECT headers, trace_parent FROM local_message WHERE trace_parent IS NOT NULL"))
		has, err := again.Optional(t.Context(), d.DB)
		require.NoError(t, err)
		assert.Equal(t, []string{"msg_key", "headers", "", "trace_parent"}, []string{has.Key, has.Headers, has.LastError, has.Trace})

		d.exec(t, "ALTER TABLE local_message DROP COLUMN msg_key")
		tx := d.begin(t)
		_, err = again.Put(t.Context(), tx, key)
		require.ErrorContains(t, err, "msg_key", "the server tells it first")
		_, err = again.Put(t.Context(), tx, key)
		require.ErrorIs(t, err, outbox.ErrNoColumn, "and then it is known")
	})
}

// TestLearningTheColumnsLeavesTheTransactionAlone: it costs one question, fixes no snapshot, and waits for no row lock.
func TestLearningTheColumnsLeavesTheTransactionAlone(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d, b := newDesk(t, srv), box(t, outbox.Config{})
		d.put(t, box(t, outbox.Config{}), outbox.Message{ID: "a", Topic: "orders", Body: 1})
		locker := d.begin(t)
		_, err := locker.ExecContext(t.Context(), "SELECT * FROM local_message FOR UPDATE")
		require.NoError(t, err)
		tx := &counter{Tx: d.begin(t, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})}
		_, err = b.Optional(t.Context(), tx)
		require.NoError(t, err)
		require.NoError(t, locker.Rollback())
		d.put(t, box(t, outbox.Config{}), outbox.Message{ID: "b", Topic: "orders", Body: 1})
		var n int
		require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM local_message").Scan(&n))
		assert.Equal(t, 2, n, "what was committed after the question is seen")
		for range 3 {
			_, err = b.Put(t.Context(), tx, outbox.Message{Topic: "orders", Key: "k", Body: 1})
			require.NoError(t, err)
		}
		assert.Equal(t, []int{3, 1}, []int{tx.execs, tx.queries}, "asked once, then one statement for each message")
	})
}

func TestOtherNamesAndNumbers(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		columns := outbox.Columns{
			ID: "no", MsgID: "uuid", Topic: "to`pic", Content: "payload", Status: "state", RetryCount: "tries",
			NextRetryTime: "due", CreateTime: "made", UpdateTime: "changed", Key: "k", Headers: "h", Trace: "t",
		}
		table := outbox.Table{Name: "my`box"}
		d := newDeskWith(t, srv, outbox.Schema(table, outbox.SchemaOptions{Columns: columns, Key: true, Headers: true}))
		table.Database = d.database
		b := box(t, outbox.Config{Table: table, Columns: columns, Pending: 10})
		d.put(t, b, outbox.Message{ID: "a", Topic: "orders", Body: 1, Key: "k"})
		receipts := d.putAll(t, b, outbox.Message{ID: "b", Topic: "orders", Body: 1}, outbox.Message{ID: "a", Topic: "orders", Body: 1})
		assert.Equal(t, []outbox.Receipt{{ID: "b"}, {ID: "a", Duplicate: true}}, receipts)
		assert.Equal(t, [][]string{{"a", "10", "k"}, {"b", "10", "NULL"}}, d.rows(t, "SELECT uuid, state, k FROM `my``box` ORDER BY no"))
	})
}

// TestNothingIsCutByALenientServer: without strict mode MySQL cuts what is too long. What Put lets through fits.
func TestNothingIsCutByALenientServer(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d, b := newDesk(t, srv), box(t, outbox.Config{})
		tx := d.begin(t)
		_, err := tx.ExecContext(t.Context(), "SET SESSION sql_mode = ''")
		require.NoError(t, err)
		large := outbox.Message{
			ID: strings.Repeat("号", 64), Topic: strings.Repeat("t", 64), Key: strings.Repeat("😀", 255),
			Body: strings.Repeat("x", 65533), Headers: map[string]string{"h": strings.Repeat("y", 65527)},
		}
		_, err = b.Put(t.Context(), tx, large)
		require.NoError(t, err)
		large.Body = strings.Repeat("x", 65534)
		_, err = b.Put(t.Context(), tx, large)
		require.ErrorIs(t, err, outbox.ErrInvalid)
		require.NoError(t, tx.Commit())
		assert.Equal(t, [][]string{{"64", "64", "255", "65535", "65535"}}, d.rows(t,
			"SELECT CHAR_LENGTH(msg_id), CHAR_LENGTH(topic), CHAR_LENGTH(msg_key), LENGTH(msg_content), LENGTH(headers) FROM local_message"))
	})
}
