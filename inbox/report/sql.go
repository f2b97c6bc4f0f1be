package report

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/outbox-relay/outbox"
)

// Execer runs a statement: *sql.Tx, *sql.Conn, *sql.DB, and what sqlx, gorm or ent wrap around them.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// SQL marks messages as consumed in their table. The zero value is the pattern's own table, local_message in the
// connection's database.
type SQL struct {
	// Table is the message table; without a database it is the connection's.
	Table outbox.Table
	// Columns and Statuses are those of the relay's configuration; zero values are the pattern's.
	Columns  outbox.Columns
	Statuses outbox.Statuses
	// Groups are the groups of acks.groups for the topic. With two or more a message is consumed once all have reported.
	Groups []string
	// AckTable keeps who has reported, where there are two groups or more; empty is the message table's name with _ack.
	AckTable string
}

// sqlBatch is how many messages one statement names: few enough for the server to look each up in the index, whatever its
// statistics say (eq_range_index_dive_limit).
const sqlBatch = 100

// MarkConsumed marks messages of the table local_message as consumed. See SQL.MarkConsumed.
func MarkConsumed(ctx context.Context, x Execer, group string, msgIDs ...string) (int64, error) {
	return SQL{}.MarkConsumed(ctx, x, group, msgIDs...)
}

// MarkConsumed marks messages as consumed, and returns how many became so: those that were pending, sent or failed, and, with
// two groups or more, that all groups have reported now. Messages that are consumed already, dead or discarded are left
// alone, and ids that nobody knows are no error.
//
// Give it the handler's transaction and the report is exactly as true as the handler's work. It locks the messages, in the
// order of their ids, until the transaction ends: call it last.
func (s SQL) MarkConsumed(ctx context.Context, x Execer, group string, msgIDs ...string) (int64, error) {
	if len(s.Groups) > 0 && !slices.Contains(s.Groups, group) {
		return 0, fmt.Errorf("%w: group %q is none of those that have to report", ErrInvalid, group)
	}
	s = s.withDefaults()
	ids := slices.Clone(msgIDs)
	slices.Sort(ids)
	var total int64
	for some := range slices.Chunk(slices.Compact(ids), sqlBatch) {
		n, err := s.mark(ctx, x, group, some)
		total += n
		if err != nil {
			return total, fmt.Errorf("mark messages consumed in %s: %w", outbox.QuoteTable(s.Table), err)
		}
	}
	return total, nil
}

func (s SQL) withDefaults() SQL {
	if s.Table.Name == "" {
		s.Table.Name = "local_message"
	}
	if s.Columns == (outbox.Columns{}) {
		s.Columns = outbox.DefaultColumns()
	}
	if s.Statuses == (outbox.Statuses{}) {
		s.Statuses = outbox.DefaultStatuses()
	}
	if s.AckTable == "" {
		s.AckTable = s.Table.Name + "_ack"
	}
	return s
}

func (s SQL) mark(ctx context.Context, x Execer, group string, ids []string) (int64, error) {
	c := s.statements(len(ids))
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	if len(s.Groups) < 2 {
		return affected(x.ExecContext(ctx, c.consume, args...))
	}
	// Two groups that report at the same time, each in its transaction, do not see each other's report. So the message is
	// locked first, by an update that changes nothing: the later of the two waits here, and sees the other's report then.
	if _, err := x.ExecContext(ctx, c.lock, args...); err != nil {
		return 0, err
	}
	if _, err := x.ExecContext(ctx, c.report, append([]any{group}, args...)...); err != nil {
		return 0, err
	}
	groups := make([]any, len(s.Groups))
	for i, name := range s.Groups {
		groups[i] = name
	}
	n, err := affected(x.ExecContext(ctx, c.complete, slices.Concat(args, groups)...))
	if err != nil || n == 0 {
		return n, err
	}
	_, err = x.ExecContext(ctx, c.forget, args...)
	return n, err
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return n, errors.Join(err)
}

// statements are the texts for a number of messages.
type statements struct{ consume, lock, report, complete, forget string }

func (s SQL) statements(n int) statements {
	table, acks := outbox.QuoteTable(s.Table), outbox.QuoteTable(outbox.Table{Database: s.Table.Database, Name: s.AckTable})
	col := func(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
	msgID, status, updated := col(s.Columns.MsgID), col(s.Columns.Status), col(s.Columns.UpdateTime)
	these := " WHERE " + msgID + " IN (" + marks(n) + ")"
	number := func(status outbox.Status) string { return strconv.Itoa(s.Statuses[status]) }
	// Not the bare column: an optimizer that went by the index on it would read, and lock, everybody's messages.
	open := " AND " + status + "+0 IN (" + number(outbox.Pending) + "," + number(outbox.Sent) + "," + number(outbox.Failed) + ")"
	consume := "UPDATE " + table + " SET " + status + "=" + number(outbox.Consumed) + "," + updated + "=NOW()" + these + open
	return statements{
		consume: consume,
		lock:    "UPDATE " + table + " SET " + status + "=" + status + these + open,
		report:  "INSERT IGNORE INTO " + acks + " (msg_id,consumer_group,reported_at) SELECT " + msgID + ",?,NOW() FROM " + table + these + open,
		complete: consume + " AND (SELECT COUNT(*) FROM " + acks + " AS a WHERE a.msg_id=" + table + "." + msgID +
			" AND a.consumer_group IN (" + marks(len(s.Groups)) + "))=" + strconv.Itoa(len(s.Groups)),
		forget: "DELETE FROM " + acks + " WHERE msg_id IN (" + marks(n) + ") AND (SELECT " + status + " FROM " + table +
			" WHERE " + msgID + "=" + acks + ".msg_id)=" + number(outbox.Consumed),
	}
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
