package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Move moves rows of a table to its history in one transaction: those of ids that have a status to archive, are old
// enough, and are locked by nobody else. It locks by primary key in READ COMMITTED, records only, so no INSERT waits. A
// row that is in neither place is never visible to anybody, nor one that is in both. A new column of the table is added
// to the history before. It returns how many rows it moved; when the answer to a commit was lost, fewer than that.
func (hs *Histories) Move(ctx context.Context, table outbox.Table, ids []uint64) (moved int, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	attempt := func() error {
		return hs.store.OnTable(ctx, hs.pool, "archive rows of", table, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
			if t.ByID() == "" {
				return &mysql.Error{Op: "archive rows of " + t.String(), Class: mysql.ErrSchema, Text: "no unique index on " + t.Column(words.ColumnID).Name + " alone: make it the primary key"}
			}
			return mysql.Transact(ctx, conn, func(tx *sql.Tx) (err error) {
				moved, err = hs.moveIn(ctx, tx, t, ids)
				return err
			})
		})
	}
	err = attempt()
	if errors.Is(err, errFollow) {
		if err = hs.Follow(ctx, table); err == nil {
			err = attempt()
		}
	}
	if err != nil {
		return 0, err
	}
	return moved, nil
}

// moveIn locks the rows, which also keeps their table from being altered until the end of the transaction. Only then are
// the columns compared, so that a column that was added a moment ago is not left behind.
func (hs *Histories) moveIn(ctx context.Context, tx *sql.Tx, t *store.Table, ids []uint64) (int, error) {
	refs := make([]outbox.Ref, len(ids))
	for i, id := range ids {
		refs[i] = outbox.Ref{ID: id}
	}
	locked, err := readIDs(ctx, tx, t, hs.lockOldQuery(t, refs))
	if err != nil || len(locked) == 0 {
		return 0, err
	}
	history := hs.cfg.of(t.Table)
	if err := touch(ctx, tx, history); err != nil {
		return 0, err
	}
	columns, err := hs.copied(ctx, tx, t.Table, history)
	if err != nil {
		return 0, err
	}
	for _, statement := range hs.moveStatements(t, history, columns, t.IDs(locked)) {
		result, err := tx.ExecContext(ctx, statement)
		if err != nil {
			return 0, refusedByHistory(t, history, err)
		}
		// Not the decision whether a row is gone: all of them are locked by this very transaction.
		if n, err := result.RowsAffected(); err != nil || n != int64(len(locked)) {
			return 0, errors.Join(err, &mysql.Error{
				Op: "archive rows of " + t.String(), Class: ErrHistory,
				Text: fmt.Sprintf("%d of %d locked rows were written, so nothing was moved: is there a trigger on the table or on %s?", n, len(locked), history),
			})
		}
	}
	return len(locked), nil
}

// touch names the history in the transaction, which keeps it from being altered as well.
func touch(ctx context.Context, tx *sql.Tx, history outbox.Table) error {
	rows, err := tx.QueryContext(ctx, "SELECT 1 FROM "+outbox.QuoteTable(history)+" LIMIT 0")
	if err != nil {
		if errors.Is(mysql.Describe("", err), mysql.ErrGone) {
			return errFollow
		}
		return err
	}
	defer closeRows(rows)
	rows.Next()
	return rows.Err()
}

// lockOldQuery locks the rows that may go, again by status and age: they may have changed since they were found.
func (hs *Histories) lockOldQuery(t *store.Table, refs []outbox.Ref) string {
	skip := ""
	if hs.store.Server().CanSkipLocked() {
		skip = " SKIP LOCKED"
	}
	return fmt.Sprintf("SELECT %s%s AND %s IN (%s) AND %s%s%s", t.Col(words.ColumnID), exactly(t, t.IDs(refs), hs.store.Server()),
		t.Col(words.ColumnStatus), hs.store.Numbers(hs.cfg.Statuses), hs.isOld(t, words.ColumnUpdateTime), forUpdate(t, hs.store.Server()), skip)
}

// forUpdate names the table to lock where MySQL has JSON_TABLE: it refuses to lock that one (error 3569). MariaDB knows no OF.
func forUpdate(t *store.Table, srv mysql.Server) string {
	if srv.HasJSONTable() && !srv.MariaDB {
		return " FOR UPDATE OF " + mysql.Identifier(t.Name)
	}
	return " FOR UPDATE"
}

// exactly renders FROM and WHERE so that the rows of ids, and no others, are read one by one by the primary key. A list in
// IN would not do: where the server takes the table for small it scans it all, FORCE INDEX or not in a DELETE, and then
// waits for every row that somebody else has locked, a service's uncommitted one for instance.
func exactly(t *store.Table, ids string, srv mysql.Server) string {
	if !srv.HasJSONTable() {
		return fmt.Sprintf(" FROM %s%s WHERE %s IN (%s)", t.From(), t.ByID(), t.Col(words.ColumnID), ids)
	}
	kind := "BIGINT"
	if t.Unsigned {
		kind = "BIGINT UNSIGNED"
	}
	return fmt.Sprintf(" FROM JSON_TABLE('[%s]','$[*]' COLUMNS(outbox_picked %s PATH '$')) AS outbox_picked STRAIGHT_JOIN %s%s ON %s.%s=outbox_picked.outbox_picked WHERE TRUE",
		ids, kind, t.From(), t.ByID(), t.From(), t.Col(words.ColumnID))
}

// isOld compares a column with the server's clock.
func (hs *Histories) isOld(t *store.Table, meaning string) string {
	return t.Col(meaning) + "<=NOW()-" + mysql.Interval(hs.cfg.After)
}

// moveStatements renders the copy and the removal. The copy reads under the locks, not a snapshot.
func (hs *Histories) moveStatements(t *store.Table, history outbox.Table, columns []string, ids string) []string {
	list := quoteAll(columns)
	where := exactly(t, ids, hs.store.Server())
	return []string{
		fmt.Sprintf("INSERT INTO %s (%s,%s) SELECT %s,NOW(6)%s%s", outbox.QuoteTable(history), list, mysql.Identifier(store.ArchivedAt), list, where, forUpdate(t, hs.store.Server())),
		fmt.Sprintf("DELETE %s%s", t.From(), where),
	}
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = mysql.Identifier(name)
	}
	return strings.Join(quoted, ",")
}

// closeRows frees the session for its next statement. What Close could report, rows.Err has reported before. (The linter knows
// only a helper of the package itself.)
func closeRows(rows *sql.Rows) { _ = rows.Close() }

// readIDs runs a query whose only column is an id.
func readIDs(ctx context.Context, q mysql.Querier, t *store.Table, query string) ([]outbox.Ref, error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	var refs []outbox.Ref
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		number, err := t.ParseID(id)
		if err != nil {
			return nil, err
		}
		refs = append(refs, outbox.Ref{Table: t.Table, ID: number})
	}
	return refs, rows.Err()
}

// refusals are the errors of a statement that the history itself is the reason of.
var refusals = map[uint16]string{
	1048: "a column of it takes no NULL",
	1062: "it already has a row of this id or msg_id, and a unique index on it; a history made by outbox-relay has none",
	1264: "a number does not fit its column",
	1265: "a value does not fit its column",
	1292: "a value does not fit its column",
	1364: "a column that the message table has not takes no NULL and has no default",
	1366: "a text has characters that its column can't hold",
	1406: "a text is longer than its column",
	1451: "another table refers to the rows by a foreign key",
	3819: "a check of its refuses a row",
	4025: "a check of its refuses a row",
}

func refusedByHistory(t *store.Table, history outbox.Table, err error) error {
	own, ok := errors.AsType[*mysql.Error](mysql.Describe("archive rows of "+t.String(), err))
	if !ok {
		return err
	}
	why, ok := refusals[own.Number]
	if !ok {
		return err
	}
	return &mysql.Error{
		Op: own.Op, Number: own.Number, Class: ErrHistory,
		Text: "error " + strconv.Itoa(int(own.Number)) + ": nothing was moved to " + history.String() + ": " + why + "; compare SHOW CREATE TABLE of both tables and alter the history",
	}
}
