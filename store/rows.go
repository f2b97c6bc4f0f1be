package store

import (
	"bytes"
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// closeRows frees the session for its next statement. What Close could report, rows.Err has reported before. (The linter knows
// only a helper of the package itself.)
func closeRows(rows *sql.Rows) { _ = rows.Close() }

// rowColumns are the meanings of an outbox.Row in the order of selectList.
var rowColumns = [...]string{
	words.ColumnID, words.ColumnMsgID, words.ColumnTopic, words.ColumnContent, words.ColumnStatus, words.ColumnRetryCount,
	words.ColumnNextRetryTime, words.ColumnCreateTime, words.ColumnKey, words.ColumnHeaders, words.ColumnTrace, words.ColumnBodyRef,
}

// selectList renders the columns of an outbox.Row. Texts come in the connection's character set, UTF-8. A TIMESTAMP comes
// as its number of seconds, so that it is told in UTC without any doubt about the hour that happens twice in autumn.
func (t *Table) selectList() string {
	list := make([]string, len(rowColumns))
	for i, meaning := range rowColumns {
		c, ok := t.cols[meaning]
		switch {
		case !ok:
			list[i] = "NULL"
		case c.Type == "timestamp":
			list[i] = "UNIX_TIMESTAMP(" + t.Col(meaning) + ")"
		case c.Type == "datetime":
			// Under a name of its own the driver would parse it, were it asked to; as text any zero or partial date passes.
			list[i] = "CONCAT(" + t.Col(meaning) + ")"
		default:
			list[i] = t.Col(meaning)
		}
	}
	return strings.Join(list, ",")
}

// readRows runs a query whose columns are selectList's.
func (s *Store) readRows(ctx context.Context, q mysql.Querier, t *Table, query string) ([]outbox.Row, error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	var result []outbox.Row
	var raw [len(rowColumns)]sql.RawBytes
	var into [len(rowColumns)]any
	for i := range raw {
		into[i] = &raw[i]
	}
	for rows.Next() {
		if err := rows.Scan(into[:]...); err != nil {
			return nil, err
		}
		row, err := s.row(t, &raw)
		if err != nil {
			return nil, err
		}
		result = append(result, row)
	}
	return result, rows.Err()
}

// row builds the domain's row from the server's texts.
func (s *Store) row(t *Table, raw *[len(rowColumns)]sql.RawBytes) (outbox.Row, error) {
	id, err := t.ParseID(string(raw[0]))
	if err != nil {
		return outbox.Row{}, err
	}
	status, err := strconv.ParseInt(string(raw[4]), 10, 64)
	if err != nil {
		return outbox.Row{}, err
	}
	retries := 0
	if raw[5] != nil {
		if retries, err = strconv.Atoi(string(raw[5])); err != nil {
			return outbox.Row{}, err
		}
	}
	return outbox.Row{
		Table: t.Table, ID: id, MsgID: string(raw[1]), Topic: string(raw[2]), Content: content(raw[3]),
		Status: s.cfg.Statuses.Of(status), RetryCount: retries,
		NextRetry: t.timeText(words.ColumnNextRetryTime, raw[6]), Created: t.timeText(words.ColumnCreateTime, raw[7]),
		Key: bytes.Clone(raw[8]), Headers: bytes.Clone(raw[9]), TraceParent: string(raw[10]), BodyRef: string(raw[11]),
	}, nil
}

// content copies the body. An empty one is empty, not nil, whether or not the column allows NULL.
func content(raw sql.RawBytes) []byte {
	if raw == nil {
		return nil
	}
	return append(make([]byte, 0, len(raw)), raw...)
}

// timeText tells a time as the stream does: a DATETIME as the server prints it, a TIMESTAMP in UTC.
func (t *Table) timeText(meaning string, raw []byte) string {
	if len(raw) == 0 || t.cols[meaning].Type != "timestamp" {
		return string(raw)
	}
	whole, fraction, _ := strings.Cut(string(raw), ".")
	if fraction != "" {
		fraction = "." + fraction
	}
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds == 0 {
		// The epoch itself is no valid TIMESTAMP: 0 is what the zero date yields.
		return "0000-00-00 00:00:00" + fraction
	}
	return time.Unix(seconds, 0).UTC().Format(time.DateTime) + fraction
}
