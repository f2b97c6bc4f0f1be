package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Filter says which messages an operator means. Conditions that are set must all hold; a zero Filter means every message.
type Filter struct {
	// Table, "database.name" or just the name, restricts to one table.
	Table    string
	Statuses []outbox.Status
	Topic    string
	// Key is compared with the key column; where the table has none, with the msg_id.
	Key string
	// OlderThan and NewerThan compare the create_time with the database's clock.
	OlderThan, NewerThan time.Duration
	// Error is a part of last_error.
	Error  string
	IDs    []uint64
	MsgIDs []string
	// Limit is the most messages; zero means 50 for List and no limit for Retry and Discard.
	Limit int
	// Cursor continues after the message whose Cursor it is.
	Cursor string
	// Resend lets Retry take sent, consumed and discarded messages too, if Statuses asks for them.
	Resend bool
}

// ErrFilter is a filter that can't be applied; its text says why.
var ErrFilter error = &mysql.Error{Text: "these messages can't be chosen"}

// applies reports whether the filter may choose messages of the table, and after which id to continue.
func (f Filter) applies(t *Table) (ok bool, before string, err error) {
	if f.Table != "" && !strings.EqualFold(f.Table, t.Name) && !strings.EqualFold(f.Table, t.String()) {
		return false, "", nil
	}
	if f.Error != "" && !t.HasLastError {
		return false, "", fmt.Errorf("%w: %s has no last_error column; outbox-relay init adds it", ErrFilter, t)
	}
	if f.Cursor == "" {
		return true, "", nil
	}
	colon := strings.LastIndexByte(f.Cursor, ':')
	if colon < 0 {
		return false, "", fmt.Errorf("%w: the cursor must be one that a list has shown", ErrFilter)
	}
	if _, err := t.ParseID(f.Cursor[colon+1:]); err != nil {
		return false, "", fmt.Errorf("%w: the cursor must be one that a list has shown", ErrFilter)
	}
	// Tables are listed in the order of their names; those before the cursor's are done.
	switch strings.Compare(t.String(), f.Cursor[:colon]) {
	case -1:
		return false, "", nil
	case 0:
		return true, f.Cursor[colon+1:], nil
	}
	return true, "", nil
}

// Where renders the condition of the messages that the filter chooses, and the index hint that keeps it cheap.
func (s *Store) Where(t *Table, f Filter) (condition, indexHint string) {
	var parts []string
	if len(f.Statuses) > 0 {
		indexHint = t.ByDue()
		for _, status := range f.Statuses {
			if status == outbox.Sent || status == outbox.Consumed {
				// Most rows have these: reading the newest by primary key is quicker than sorting all of them.
				indexHint = ""
			}
		}
		parts = append(parts, t.Col(words.ColumnStatus)+" IN ("+s.Numbers(f.Statuses)+")")
	}
	if len(f.IDs) > 0 {
		numbers := make([]string, len(f.IDs))
		for i, id := range f.IDs {
			numbers[i] = t.FormatID(id)
		}
		indexHint = t.ByID()
		parts = append(parts, t.Col(words.ColumnID)+" IN ("+strings.Join(numbers, ",")+")")
	}
	if len(f.MsgIDs) > 0 {
		quoted := make([]string, len(f.MsgIDs))
		for i, id := range f.MsgIDs {
			quoted[i] = t.QuoteMsgID(id)
		}
		indexHint = ""
		parts = append(parts, t.Col(words.ColumnMsgID)+" IN ("+strings.Join(quoted, ",")+")")
	}
	if f.Topic != "" {
		parts = append(parts, t.ExactTopic()+"="+mysql.Literal(f.Topic))
	}
	if f.Key != "" {
		key := words.ColumnMsgID
		if t.HasKey {
			key = words.ColumnKey
		}
		parts = append(parts, t.Col(key)+"="+t.text(key, f.Key))
	}
	if f.OlderThan > 0 {
		parts = append(parts, t.Col(words.ColumnCreateTime)+"<=NOW()-"+mysql.Interval(f.OlderThan))
	}
	if f.NewerThan > 0 {
		parts = append(parts, t.Col(words.ColumnCreateTime)+">=NOW()-"+mysql.Interval(f.NewerThan))
	}
	if f.Error != "" {
		parts = append(parts, t.Col(words.ColumnLastError)+" LIKE "+t.text(words.ColumnLastError, "%"+likeEscaper.Replace(f.Error)+"%"))
	}
	if len(parts) == 0 {
		return "TRUE", indexHint
	}
	return strings.Join(parts, " AND "), indexHint
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// ParseMessageName reads what a person gives to name a message: an id, or else a msg_id. A number may be either.
func ParseMessageName(text string) Filter {
	if id, err := strconv.ParseUint(text, 10, 64); err == nil {
		return Filter{IDs: []uint64{id}}
	}
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Filter{IDs: []uint64{uint64(id)}} //nolint:gosec // the 64 bits of a negative id
	}
	return Filter{MsgIDs: []string{text}}
}
