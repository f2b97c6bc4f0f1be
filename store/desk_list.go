package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// Message is a row as the operator's desk shows it.
type Message struct {
	outbox.Row
	// Number is the stored status, which tells more than Status when that is Foreign.
	Number int64
	// Bytes is the length of the content as it is stored.
	Bytes int64
	// Updated is the update_time as the database prints it, a TIMESTAMP in UTC.
	Updated   string
	LastError string
	// Age is since create_time; Due is how long until next_retry_time, negative when that is past, and zero without one.
	// Both by the database's clock.
	Age, Due time.Duration
	// Cursor is what Filter.Cursor takes to continue behind this message.
	Cursor string
}

// List returns the chosen messages, of each table the newest first, without their contents.
func (s *Store) List(ctx context.Context, f Filter) ([]Message, error) {
	if f.Limit <= 0 {
		f.Limit = 50
	}
	return s.messages(ctx, f, false)
}

// Show returns the messages that an id or msg_id names, with their contents: several when more tables know it.
func (s *Store) Show(ctx context.Context, idOrMsgID string) ([]Message, error) {
	named := ParseMessageName(idOrMsgID)
	named.Limit = 50
	found, err := s.messages(ctx, named, true)
	if err != nil || len(found) > 0 || len(named.MsgIDs) > 0 {
		return found, err
	}
	// A msg_id may look like a number.
	return s.messages(ctx, Filter{MsgIDs: []string{idOrMsgID}, Limit: 50}, true)
}

func (s *Store) messages(ctx context.Context, f Filter, contents bool) ([]Message, error) {
	if err := s.checkTable(f); err != nil {
		return nil, err
	}
	var found []Message
	for _, table := range s.Tables() {
		if len(found) >= f.Limit {
			break
		}
		var some []Message
		err := s.OnTable(ctx, s.scan, "list messages of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			ok, before, err := f.applies(t)
			if !ok {
				return err
			}
			some, err = s.tableMessages(ctx, conn, t, f, before, f.Limit-len(found), contents)
			return err
		})
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

func (s *Store) tableMessages(ctx context.Context, conn *sql.Conn, t *Table, f Filter, before string, limit int, contents bool) ([]Message, error) {
	condition, indexHint := s.Where(t, f)
	if before != "" {
		condition += " AND " + t.Col(words.ColumnID) + "<" + before
	}
	id := t.Col(words.ColumnID)
	// The ids are found first, so that a sort never carries bodies.
	query := fmt.Sprintf("SELECT %s FROM %s JOIN (SELECT %s AS chosen FROM %s%s WHERE %s ORDER BY %s DESC LIMIT %d) AS some ON %s=some.chosen ORDER BY %s DESC",
		t.MessageList(contents), t.From(), id, t.From(), indexHint, condition, id, limit, id, id)
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	var found []Message
	for rows.Next() {
		m, err := s.ScanMessage(rows, t)
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, rows.Err()
}

// MessageList renders the columns that ScanMessage reads; contents asks for the bodies too.
func (t *Table) MessageList(contents bool) string {
	updated := "CONCAT(" + t.Col(words.ColumnUpdateTime) + ")"
	if t.cols[words.ColumnUpdateTime].Type == "timestamp" {
		updated = "UNIX_TIMESTAMP(" + t.Col(words.ColumnUpdateTime) + ")"
	}
	lastError := "NULL"
	if t.HasLastError {
		lastError = t.Col(words.ColumnLastError)
	}
	list := t.selectList()
	if !contents {
		list = strings.Replace(list, t.Col(words.ColumnContent), "NULL", 1)
	}
	return fmt.Sprintf("%s,COALESCE(LENGTH(%s),0),%s,%s,TIMESTAMPDIFF(SECOND,%s,NOW()),TIMESTAMPDIFF(SECOND,NOW(),%s)",
		list, t.Col(words.ColumnContent), updated, lastError, t.Col(words.ColumnCreateTime), t.Col(words.ColumnNextRetryTime))
}

// ScanMessage reads what MessageList lists, and what is selected behind it into more.
func (s *Store) ScanMessage(rows *sql.Rows, t *Table, more ...any) (Message, error) {
	var raw [len(rowColumns)]sql.RawBytes
	var updated, lastError sql.RawBytes
	var age, due sql.NullInt64
	var m Message
	into := make([]any, 0, len(raw)+5)
	for i := range raw {
		into = append(into, &raw[i])
	}
	into = append(into, &m.Bytes, &updated, &lastError, &age, &due)
	if err := rows.Scan(append(into, more...)...); err != nil {
		return m, err
	}
	row, err := s.row(t, &raw)
	if err != nil {
		return m, err
	}
	m.Row = row
	if m.Number, err = strconv.ParseInt(string(raw[4]), 10, 64); err != nil {
		return m, err
	}
	m.Updated, m.LastError = t.timeText(words.ColumnUpdateTime, updated), string(lastError)
	const most = int64(200 * 365 * 24 * time.Hour / time.Second) // a parked row is due later than a duration can tell
	m.Age, m.Due = time.Duration(age.Int64)*time.Second, time.Duration(min(due.Int64, most))*time.Second
	m.Cursor = t.String() + ":" + t.FormatID(row.ID)
	return m, nil
}

var errUnknownTable = errors.New("no such table among the source's")

// checkTable fails when the filter names a table that the source does not have.
func (s *Store) checkTable(f Filter) error {
	if f.Table == "" {
		return nil
	}
	for _, t := range s.Tables() {
		if strings.EqualFold(f.Table, t.Name) || strings.EqualFold(f.Table, t.String()) {
			return nil
		}
	}
	return fmt.Errorf("%w: %w: %s", ErrFilter, errUnknownTable, f.Table)
}
