package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Archived is a message in a history. Its Table is the message table that it came from.
type Archived struct {
	Message
	History outbox.Table
	// At is when it was archived, as the database prints it.
	At string
}

// ShowArchived returns the messages of the histories that an id or msg_id names, the newest first, with their contents.
// Histories that do not exist are left out.
func (s *Store) ShowArchived(ctx context.Context, idOrMsgID string) ([]Archived, error) {
	named := ParseMessageName(idOrMsgID)
	found, err := s.FindArchived(ctx, named)
	if err != nil || len(found) > 0 || len(named.MsgIDs) > 0 {
		return found, err
	}
	return s.FindArchived(ctx, Filter{MsgIDs: []string{idOrMsgID}})
}

// FindArchived returns the messages of the histories that the filter names by id or msg_id; other conditions are not looked
// at, but for the table.
func (s *Store) FindArchived(ctx context.Context, f Filter) ([]Archived, error) {
	if err := s.checkTable(f); err != nil {
		return nil, err
	}
	var found []Archived
	for _, table := range s.Tables() {
		err := s.OnTable(ctx, s.scan, "look for archived messages of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			if ok, _, err := f.applies(t); !ok {
				return err
			}
			h, err := s.historyTable(ctx, conn, t)
			if err != nil || h == nil {
				return err
			}
			some, err := s.archivedMessages(ctx, conn, t, h, Filter{IDs: f.IDs, MsgIDs: f.MsgIDs})
			found = append(found, some...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// historyTable describes the history of a table, nil when there is none.
func (s *Store) historyTable(ctx context.Context, conn *sql.Conn, t *Table) (*Table, error) {
	name := outbox.HistoryName(s.cfg.Archive.Table, t.Table)
	columns, err := mysql.ReadColumns(ctx, conn, name.Database, name.Name)
	if err != nil {
		return nil, err
	}
	if _, ok := find(columns[name.Name], archivedAt); !ok {
		return nil, nil //nolint:nilnil // none is an answer
	}
	looked, err := lookAt(ctx, conn, s.Server(), s.cfg.Columns, name.Database, []string{name.Name})
	if err != nil {
		return nil, err
	}
	return &looked[0], nil
}

func (s *Store) archivedMessages(ctx context.Context, conn *sql.Conn, t, h *Table, f Filter) ([]Archived, error) {
	condition, _ := s.Where(h, f)
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("SELECT %s,CONCAT(%s) FROM %s WHERE %s ORDER BY %s DESC LIMIT %d",
		h.MessageList(true), mysql.Identifier(archivedAt), h.From(), condition, mysql.Identifier(archivedAt), BatchSize))
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	var found []Archived
	for rows.Next() {
		a := Archived{History: h.Table}
		if a.Message, err = s.ScanMessage(rows, h, &a.At); err != nil {
			return nil, err
		}
		a.Table = t.Table
		found = append(found, a)
	}
	return found, rows.Err()
}

// ErrInTable is a message that is in its table (again), so that it is not brought back from the history.
var ErrInTable = errors.New("its table has a message of that id or msg_id")

// Resend brings an archived message back into its table as a pending one, in one transaction, so that it goes the ordinary
// way: in order, marked, and safe from crashes. It keeps its msg_id and everything else but its id, where the table gives
// ids, and carries one more header (words.HeaderResend). note is kept in last_error where the table has it. ErrInTable when the
// table has the message again; ErrFilter when the table has no headers column, or the message's headers are no JSON object.
func (s *Store) Resend(ctx context.Context, a Archived, note string) error {
	headers, err := resendHeaders(a.Headers)
	if err != nil {
		return fmt.Errorf("%w: message %s: %w", ErrFilter, a.MsgID, err)
	}
	unanswered := false // a commit that has perhaps moved the row
	return s.OnTable(ctx, s.archive, "resend a message of", a.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		if !t.HasHeaders {
			return lacksHeaders(t)
		}
		moved := false
		err := mysql.Transact(ctx, conn, func(tx *sql.Tx) error {
			err := s.resendIn(ctx, tx, t, a, headers, note)
			moved = err == nil
			return err
		})
		if unanswered && errors.Is(err, errNotInHistory) {
			return nil
		}
		unanswered = moved && err != nil
		return err
	})
}

var errNotInHistory = errors.New("not in the history any more")

// CanResend says what Resend would: nil, ErrInTable or ErrFilter. It changes nothing.
func (s *Store) CanResend(ctx context.Context, a Archived) error {
	if _, err := resendHeaders(a.Headers); err != nil {
		return fmt.Errorf("%w: message %s: %w", ErrFilter, a.MsgID, err)
	}
	return s.OnTable(ctx, s.work, "look for a message in", a.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		if !t.HasHeaders {
			return lacksHeaders(t)
		}
		var there bool
		err := conn.QueryRowContext(ctx, "SELECT COUNT(*)>0 FROM "+t.From()+" WHERE "+t.Col(words.ColumnMsgID)+"="+t.QuoteMsgID(a.MsgID)).Scan(&there)
		if err == nil && there {
			return inTable(t)
		}
		return err
	})
}

func lacksHeaders(t *Table) error {
	return fmt.Errorf("%w: %s has no headers column, so consumers could not tell that the message was sent before; outbox-relay init adds it", ErrFilter, t)
}

func inTable(t *Table) error {
	return &mysql.Error{Op: "resend message of " + t.String(), Number: 1062, Class: ErrInTable, Text: "it is there (again), and stays in the history as it was: look at it with outbox-relay messages show"}
}

func (s *Store) resendIn(ctx context.Context, tx *sql.Tx, t *Table, a Archived, headers, note string) error {
	where := fmt.Sprintf("%s=%s AND %s=%s", t.Col(words.ColumnID), t.FormatID(a.ID), mysql.Identifier(archivedAt), mysql.Literal(a.At))
	locked, err := readIDs(ctx, tx, t, "SELECT "+t.Col(words.ColumnID)+" FROM "+outbox.QuoteTable(a.History)+" WHERE "+where+" FOR UPDATE")
	if err != nil {
		return err
	}
	if len(locked) == 0 {
		return fmt.Errorf("%w: message %s is %w", ErrFilter, a.MsgID, errNotInHistory)
	}
	both, err := readShapes(ctx, tx, t.Table, a.History)
	if err != nil {
		return err
	}
	id, _ := find(both.source, t.cols[words.ColumnID].Name)
	given := strings.Contains(id.Extra, "auto_increment") // the table gives a row its id
	set := map[string]string{
		words.ColumnStatus: s.Number(outbox.Pending), words.ColumnRetryCount: "0", words.ColumnNextRetryTime: string(noTime),
		words.ColumnUpdateTime: "NOW()", words.ColumnHeaders: mysql.Literal(headers),
	}
	if t.HasLastError {
		set[words.ColumnLastError] = mysql.Literal(t.FitError(note))
	}
	names, values := t.broughtBack(both, set, given)
	_, err = tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s WHERE %s",
		t.From(), quoteAll(names), strings.Join(values, ","), outbox.QuoteTable(a.History), where))
	if own, ok := errors.AsType[*mysql.Error](mysql.Describe("", err)); ok && own.Number == 1062 {
		return inTable(t)
	}
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM "+outbox.QuoteTable(a.History)+" WHERE "+where)
	return err
}

// broughtBack pairs the table's columns with what they get: most of them what the history has.
func (t *Table) broughtBack(both shapes, set map[string]string, given bool) (names, values []string) {
	special := map[string]string{}
	for meaning, value := range set {
		special[strings.ToLower(t.cols[meaning].Name)] = value
	}
	for _, c := range both.source {
		value, isSpecial := special[strings.ToLower(c.Name)]
		_, has := find(both.target, c.Name)
		switch {
		case generated(c), given && strings.EqualFold(c.Name, t.cols[words.ColumnID].Name):
			continue
		case isSpecial:
		case has:
			value = mysql.Identifier(c.Name)
		default:
			continue
		}
		names, values = append(names, c.Name), append(values, value)
	}
	return names, values
}

// resendHeaders adds the header, or counts it up.
func resendHeaders(text []byte) (string, error) {
	headers := map[string]json.RawMessage{}
	if trimmed := strings.TrimSpace(string(text)); trimmed != "" && trimmed != "null" {
		if json.Unmarshal(text, &headers) != nil {
			return "", errors.New("its headers are no JSON object, so none can be added")
		}
	}
	var before string
	count := 0
	if json.Unmarshal(headers[words.HeaderResend], &before) == nil {
		if n, err := strconv.Atoi(before); err == nil {
			count = n
		}
	}
	headers[words.HeaderResend] = json.RawMessage(strconv.Quote(strconv.Itoa(count + 1)))
	merged, err := json.Marshal(headers)
	return string(merged), err
}
