//go:build !unit

package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/rig"
)

// TestDuplicatesAreToldAndTouchNothing: whatever the driver is set to, a repeated id is told, its row stays as it is, down to
// a column with ON UPDATE, and the binlog gets nothing.
func TestDuplicatesAreToldAndTouchNothing(t *testing.T) {
	drivers(t, func(t *testing.T, srv *rig.Server, setup func(*mysql.Config)) {
		d := newDesk(t, srv, setup)
		d.exec(t, "ALTER TABLE local_message MODIFY update_time DATETIME(6) NOT NULL DEFAULT NOW(6) ON UPDATE NOW(6)")
		b := box(t, outbox.Config{})
		assert.Equal(t, []outbox.Receipt{{ID: "a"}, {ID: "a", Duplicate: true}, {ID: "b"}}, d.put(t, b,
			outbox.Message{ID: "a", Topic: "orders", Body: 1}, outbox.Message{ID: "a", Topic: "orders", Body: 2}, outbox.Message{ID: "b", Topic: "orders", Body: 3}))
		d.exec(t, "UPDATE local_message SET status = 1, retry_count = 3, update_time = '2020-01-01' WHERE msg_id = 'a'")
		before := d.rows(t, "SELECT * FROM local_message ORDER BY id")
		from := d.end(t)

		assert.Equal(t, []outbox.Receipt{{ID: "a", Duplicate: true}, {ID: "b", Duplicate: true}}, d.put(t, b,
			outbox.Message{ID: "a", Topic: "other", Body: 4}, outbox.Message{ID: "b", Topic: "orders", Key: "k", Body: 5}))
		assert.Equal(t, []outbox.Receipt{{ID: "b", Duplicate: true}, {ID: "a", Duplicate: true}}, d.putAll(t, b,
			outbox.Message{ID: "b", Topic: "other", Body: 4}, outbox.Message{ID: "a", Topic: "orders", Key: "k", Body: 5}))
		assert.Equal(t, before, d.rows(t, "SELECT * FROM local_message ORDER BY id"))
		assert.Empty(t, d.binlog(t, from))

		d.put(t, b, outbox.Message{ID: "c", Topic: "orders", Body: 6})
		assert.NotEmpty(t, d.binlog(t, from), "the check above can fail")
	})
}

// TestPutAllTellsWhichWereDuplicates, among ids of the caller's and made ones, spelled as the collation takes for the same,
// given twice, and in a table where another connection's numbers lie between.
func TestPutAllTellsWhichWereDuplicates(t *testing.T) {
	drivers(t, func(t *testing.T, srv *rig.Server, setup func(*mysql.Config)) {
		for _, step := range []string{"1", "3"} {
			d := newDesk(t, srv, setup)
			b := box(t, outbox.Config{})
			msg := func(id string) outbox.Message { return outbox.Message{ID: id, Topic: "orders", Body: 1} }
			d.put(t, b, msg("x"), msg("y"), msg("ß"))
			tx := d.begin(t)
			_, err := tx.ExecContext(t.Context(), "SET SESSION auto_increment_increment = "+step)
			require.NoError(t, err)
			receipts, err := b.PutAll(t.Context(), tx, []outbox.Message{
				msg("y"), msg("n1"), {Topic: "orders", Body: 1}, msg("x"), msg("X"), msg("n2"), msg("n2"), msg("N1"), msg("n3"),
			})
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
			var got []string
			for _, r := range receipts {
				if !r.Duplicate {
					got = append(got, r.ID)
				}
			}
			assert.Equal(t, []string{"n1", receipts[2].ID, "n2", "n3"}, got)
			assert.Equal(t, append([]string{"x", "y", "ß"}, got...), d.ids(t), "in the order given")
		}
	})
}

// TestPutAllInAnOldSnapshot: what another transaction has committed since can't be seen, and is a duplicate all the same.
func TestPutAllInAnOldSnapshot(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d, b := newDesk(t, srv), box(t, outbox.Config{})
		tx := d.begin(t, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		var n int
		require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM local_message").Scan(&n))
		d.put(t, b, outbox.Message{ID: "a", Topic: "orders", Body: 1})
		_, err := b.Put(t.Context(), tx, outbox.Message{ID: "before", Topic: "orders", Body: 1})
		require.NoError(t, err)
		d.put(t, b, outbox.Message{ID: "c", Topic: "orders", Body: 1})
		receipts, err := b.PutAll(t.Context(), tx, []outbox.Message{
			{ID: "c", Topic: "orders", Body: 2}, {ID: "d", Topic: "orders", Body: 2}, {ID: "a", Topic: "orders", Body: 2}, {ID: "before", Topic: "orders", Body: 2},
		})
		require.NoError(t, err)
		assert.Equal(t, []outbox.Receipt{{ID: "c", Duplicate: true}, {ID: "d"}, {ID: "a", Duplicate: true}, {ID: "before", Duplicate: true}}, receipts)
	})
}

// TestPutAllWithoutQuestions: an Execer that can't be asked costs a statement for each message with an id of the caller's.
func TestPutAllWithoutQuestions(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d, b := newDesk(t, srv), box(t, outbox.Config{})
		tx := d.begin(t)
		for _, duplicate := range []bool{false, true} {
			receipts, err := b.PutAll(t.Context(), mute{tx}, []outbox.Message{{ID: "a", Topic: "orders", Key: "k", Body: 1}, {ID: "b", Topic: "orders", Body: 1}})
			require.NoError(t, err)
			assert.Equal(t, []outbox.Receipt{{ID: "a", Duplicate: duplicate}, {ID: "b", Duplicate: duplicate}}, receipts)
		}
	})
}

// TestAnotherUniqueKeyIsNoDuplicate: a message that collides with a different one must not be swallowed.
func TestAnotherUniqueKeyIsNoDuplicate(t *testing.T) {
	drivers(t, func(t *testing.T, srv *rig.Server, setup func(*mysql.Config)) {
		d, b := newDesk(t, srv, setup), box(t, outbox.Config{})
		d.exec(t, "ALTER TABLE local_message ADD UNIQUE KEY (topic, msg_key)")
		d.put(t, b, outbox.Message{ID: "a", Topic: "orders", Key: "k", Body: 1})
		before := d.rows(t, "SELECT * FROM local_message")
		for _, id := range []string{"b", ""} {
			tx := d.begin(t)
			_, err := b.Put(t.Context(), tx, outbox.Message{ID: id, Topic: "orders", Key: "k", Body: 2})
			require.Error(t, err)
			if id != "" {
				require.ErrorIs(t, err, outbox.ErrConflict)
			}
			_, err = b.PutAll(t.Context(), tx, []outbox.Message{{ID: "c", Topic: "orders", Key: "other", Body: 3}, {ID: id, Topic: "orders", Key: "k", Body: 2}})
			require.Error(t, err)
			require.NoError(t, tx.Rollback())
		}
		assert.Equal(t, before, d.rows(t, "SELECT * FROM local_message"))
	})
}

// TestARepeatWaitsForTheFirst: while the outcome of the first transaction is open, the second one's Put waits, and then says
// what has become true.
func TestARepeatWaitsForTheFirst(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		for _, commit := range []bool{true, false} {
			d, b := newDesk(t, srv), box(t, outbox.Config{})
			m := outbox.Message{ID: "a", Topic: "orders", Body: 1}
			first, second := d.begin(t), d.begin(t)
			_, err := b.Put(t.Context(), first, m)
			require.NoError(t, err)
			connection := d.connection(t, second)
			told := make(chan outbox.Receipt, 1) // size 1: the goroutine ends whether or not it is read
			go func() {
				receipt, err := b.Put(t.Context(), second, m)
				assert.NoError(t, err)
				told <- receipt
			}()
			d.waits(t, connection)
			if commit {
				require.NoError(t, first.Commit())
			} else {
				require.NoError(t, first.Rollback())
			}
			assert.Equal(t, outbox.Receipt{ID: "a", Duplicate: commit}, <-told)
			require.NoError(t, second.Commit())
			assert.Equal(t, []string{"a"}, d.ids(t))
		}
	})
}

// TestWritersRepeatOneAnother: many transactions put overlapping sets of ids, some of which roll back. Each id has one row, and
// exactly one committed receipt that calls it new.
func TestWritersRepeatOneAnother(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d, b := newDesk(t, srv), box(t, outbox.Config{})
		const writers, rounds, span = 6, 25, 40
		results := make(chan []outbox.Receipt, writers*rounds) // all of them: nobody reads before the end
		done := make(chan struct{})
		for w := range writers {
			go func() {
				defer func() { done <- struct{}{} }()
				for round := range rounds {
					d.round(t, b, w, round, span, results)
				}
			}()
		}
		for range writers {
			<-done
		}
		close(results)
		fresh := map[string]int{}
		for receipts := range results {
			for _, r := range receipts {
				if !r.Duplicate {
					fresh[r.ID]++
				}
			}
		}
		ids := d.ids(t)
		assert.Len(t, fresh, len(ids))
		for _, id := range ids {
			assert.Equal(t, 1, fresh[id], "receipts that call %s new", id)
		}
	})
}

// round is one transaction of a writer: one Put and one PutAll, tried again after a deadlock, every fourth rolled back.
func (d *desk) round(t *testing.T, b *outbox.Box, w, round, span int, results chan<- []outbox.Receipt) {
	for {
		var all []outbox.Receipt
		err := outbox.Within(t.Context(), d.DB, func(ctx context.Context, tx *sql.Tx) error {
			messages := make([]outbox.Message, 8)
			for i := range messages {
				n := (round*3 + i) % span
				messages[i] = outbox.Message{ID: "m-" + strings.Repeat("x", n), Topic: "orders", Key: "k", Body: w}
			}
			one, err := b.Put(ctx, tx, messages[0])
			if err != nil {
				return err
			}
			rest, err := b.PutAll(ctx, tx, messages[1:])
			if err != nil {
				return err
			}
			all = append([]outbox.Receipt{one}, rest...)
			if (w+round)%4 == 0 {
				return errRolledBack
			}
			return nil
		})
		var refused *mysql.MySQLError
		switch {
		case err == nil:
			results <- all
			return
		case errors.Is(err, errRolledBack):
			return
		case errors.As(err, &refused) && refused.Number == 1213: // a deadlock: the server has rolled back
		default:
			assert.NoError(t, err)
			return
		}
	}
}
