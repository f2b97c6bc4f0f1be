package messages

import (
	"fmt"
	"strconv"

	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Line is a message in a list.
type Line struct {
	Table     string  `json:"table"`
	ID        string  `json:"id"`
	MsgID     string  `json:"msg_id"`
	Topic     string  `json:"topic"`
	Status    string  `json:"status"`
	Retries   int     `json:"retry_count"`
	Age       float64 `json:"age_seconds"`
	NextRetry string  `json:"next_retry_time,omitempty"`
	// Due is how long until next_retry_time, by the database's clock; negative when that is past.
	Due       *float64 `json:"due_in_seconds,omitempty"`
	Bytes     int64    `json:"content_bytes"`
	LastError string   `json:"last_error,omitempty"`
}

// LineOf shows a message.
func LineOf(rows *store.Store, m *store.Message) Line {
	line := Line{
		Table: m.Table.String(), ID: Number(rows, m.Ref()), MsgID: m.MsgID, Topic: m.Topic, Status: statusText(m),
		Retries: m.RetryCount, Age: human.Seconds(m.Age), NextRetry: m.NextRetry, Bytes: m.Bytes, LastError: m.LastError,
	}
	if m.NextRetry != "" {
		due := human.Seconds(m.Due)
		line.Due = &due
	}
	return line
}

// Number shows an id as the table's column means it.
func Number(rows *store.Store, ref outbox.Ref) string {
	for _, t := range rows.Tables() {
		if t.Table == ref.Table && t.Unsigned {
			return strconv.FormatUint(ref.ID, 10)
		}
	}
	return strconv.FormatInt(int64(ref.ID), 10) //nolint:gosec // the same 64 bits, read as the column's type
}

// statusText shows a status; a number that the configuration does not name is shown as it is.
func statusText(m *store.Message) string {
	if m.Status == outbox.Foreign {
		return fmt.Sprintf("foreign (%d)", m.Number)
	}
	return m.Status.String()
}
