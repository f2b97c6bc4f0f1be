package history

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
	"example.com/outbox-relay/store"
)

// ErrInTable is a message that is in its table (again), so that it is not brought back from the history.
var ErrInTable = errors.New("its table has a message of that id or msg_id")

// Resend brings an archived message back into its table as a pending one, in one transaction, so that it goes the ordinary
// way: in order, marked, and safe from crashes. It keeps its msg_id and everything else but its id, where the table gives
// ids, and carries one more header (words.HeaderResend). note is kept in last_error where the table has it. ErrInTable when the
// table has the message again; store.ErrFilter when the table has no headers column, or the message's headers are no JSON object.
func (hs *Histories) Resend(ctx context.Context, a Archived, note string) error {
	headers, err := resendHeaders(a.Headers)
	if err != nil {
		return fmt.Errorf("%w: message %s: %w", store.ErrFilter, a.MsgID, err)
	}
	unanswered := false // a commit that has perhaps moved the row
	return hs.store.OnTable(ctx, hs.pool, "resend a message of", a.Table, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
		if !t.HasHeaders {
			return lacksHeaders(t)
		}
		moved := false
		err := mysql.Transact(ctx, conn, func(tx *sql.Tx) error {
			err := hs.resendIn(ctx, tx, t, a, headers, note)
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

// CanResend says what Resend would: nil, ErrInTable or store.ErrFilter. It changes nothing.
func (hs *Histories) CanResend(ctx context.Context, a Archived) error {
	if _, err := resendHeaders(a.Headers); err != nil {
		return fmt.Errorf("%w: message %s: %w", store.ErrFilter, a.MsgID, err)
	}
	return hs.store.OnTable(ctx, hs.store.Work(), "look for a message in", a.Table, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
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

func lacksHeaders(t *store.Table) error {
	return fmt.Errorf("%w: %s has no headers column, so consumers could not tell that the message was sent before; outbox-relay init adds it", store.ErrFilter, t)
}

func inTable(t *store.Table) error {
	return &mysql.Error{Op: "resend message of " + t.String(), Number: 1062, Class: ErrInTable, Text: "it is there (again), and stays in the history as it was: look at it with outbox-relay messages show"}
}

func (hs *Histories) resendIn(ctx context.Context, tx *sql.Tx, t *store.Table, a Archived, headers, note string) error {
	where := fmt.Sprintf("%s=%s AND %s=%s", t.Col(words.ColumnID), t.FormatID(a.ID), mysql.Identifier(store.ArchivedAt), mysql.Literal(a.At))
	locked, err := readIDs(ctx, tx, t, "SELECT "+t.Col(words.ColumnID)+" FROM "+outbox.QuoteTable(a.History)+" WHERE "+where+" FOR UPDATE")
	if err != nil {
		return err
	}
	if len(locked) == 0 {
		return fmt.Errorf("%w: message %s is %w", store.ErrFilter, a.MsgID, errNotInHistory)
	}
	both, err := readShapes(ctx, tx, t.Table, a.History)
	if err != nil {
		return err
	}
	id, _ := find(both.source, t.Column(words.ColumnID).Name)
	given := strings.Contains(id.Extra, "auto_increment") // the table gives a row its id
	set := map[string]string{
		words.ColumnStatus: hs.store.Number(outbox.Pending), words.ColumnRetryCount: "0", words.ColumnNextRetryTime: store.TheStreams,
		words.ColumnUpdateTime: "NOW()", words.ColumnHeaders: mysql.Literal(headers),
	}
	if t.HasLastError {
		set[words.ColumnLastError] = mysql.Literal(t.FitError(note))
	}
	names, values := broughtBack(t, both, set, given)
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
func broughtBack(t *store.Table, both shapes, set map[string]string, given bool) (names, values []string) {
	special := map[string]string{}
	for meaning, value := range set {
		special[strings.ToLower(t.Column(meaning).Name)] = value
	}
	for _, c := range both.source {
		value, isSpecial := special[strings.ToLower(c.Name)]
		_, has := find(both.target, c.Name)
		switch {
		case generated(c), given && strings.EqualFold(c.Name, t.Column(words.ColumnID).Name):
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
