package store

import (
	"context"
	"database/sql"
	"strings"
)

// foundColumn is a column as information_schema describes it.
type foundColumn struct {
	column
	unsigned bool
}

// foundIndex is an index as information_schema describes it.
type foundIndex struct {
	name    string
	unique  bool
	usable  bool // may be named in a hint
	columns []string
}

// readColumns returns the columns of each table. Invisible ones are among them: the relay names its columns.
func readColumns(ctx context.Context, conn *sql.Conn, where string) (map[string][]foundColumn, error) {
	rows, err := conn.QueryContext(ctx, "SELECT TABLE_NAME, COLUMN_NAME, LOWER(DATA_TYPE), LOWER(COLUMN_TYPE), COALESCE(CHARACTER_SET_NAME,''),"+
		" COALESCE(COLLATION_NAME,''), COALESCE(CHARACTER_MAXIMUM_LENGTH,0) FROM information_schema.COLUMNS"+where+" ORDER BY TABLE_NAME, ORDINAL_POSITION")
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	found := map[string][]foundColumn{}
	for rows.Next() {
		var table, columnType string
		var c foundColumn
		if err := rows.Scan(&table, &c.name, &c.kind, &columnType, &c.charset, &c.collate, &c.length); err != nil {
			return nil, err
		}
		c.unsigned = strings.Contains(columnType, "unsigned")
		found[table] = append(found[table], c)
	}
	return found, rows.Err()
}

// readIndexes returns the indexes of each table.
func readIndexes(ctx context.Context, conn *sql.Conn, srv server, where string) (map[string][]foundIndex, error) {
	rows, err := conn.QueryContext(ctx, "SELECT TABLE_NAME, INDEX_NAME, NON_UNIQUE, COALESCE(COLUMN_NAME,''), INDEX_TYPE, "+srv.indexVisible+
		" FROM information_schema.STATISTICS"+where+" ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX")
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	found := map[string][]foundIndex{}
	for rows.Next() {
		var table, name, columnName, kind, visible string
		var nonUnique bool
		if err := rows.Scan(&table, &name, &nonUnique, &columnName, &kind, &visible); err != nil {
			return nil, err
		}
		indexes := found[table]
		if len(indexes) == 0 || indexes[len(indexes)-1].name != name {
			indexes = append(indexes, foundIndex{name: name, unique: !nonUnique, usable: kind == "BTREE" && visible == "YES"})
		}
		last := &indexes[len(indexes)-1]
		last.columns = append(last.columns, columnName)
		found[table] = indexes
	}
	return found, rows.Err()
}

// chooseIndexes finds the indexes by their columns: their names are the user's business.
func (t *Table) chooseIndexes(indexes []foundIndex) {
	is := func(columns []string, meanings ...string) bool {
		if len(columns) < len(meanings) {
			return false
		}
		for i, meaning := range meanings {
			if !strings.EqualFold(columns[i], t.cols[meaning].name) {
				return false
			}
		}
		return true
	}
	for _, index := range indexes {
		if is(index.columns, "msg_id") && len(index.columns) == 1 && index.unique {
			t.msgIDUnique = true
		}
		if !index.usable {
			continue
		}
		if is(index.columns, "msg_id") && (t.byMsg == "" || index.unique && len(index.columns) == 1) {
			t.byMsg = index.name
		}
		if is(index.columns, "id") && len(index.columns) == 1 && index.unique && (t.primary == "" || index.name == "PRIMARY") {
			t.primary = index.name
		}
		// The shorter index is the better one: behind it InnoDB keeps the primary key, so that rows come in id order.
		if is(index.columns, "status", "next_retry_time") && (t.due == "" || len(index.columns) == 2) {
			t.due = index.name
		}
	}
}

// column1 reads the first column of a query's result.
func column1(ctx context.Context, conn *sql.Conn, query string) ([]string, error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	var values []string
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, rows.Err()
}

// pairs reads two columns of a query's result as a map.
func pairs(ctx context.Context, conn *sql.Conn, query string) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	values := map[string]string{}
	for rows.Next() {
		var key, value string
		if err := rows.Scan(&key, &value); err != nil {
			return nil, err
		}
		values[key] = value
	}
	return values, rows.Err()
}

// closeRows frees the session for its next statement. What Close could report, rows.Err has reported before.
func closeRows(rows *sql.Rows) { _ = rows.Close() }
