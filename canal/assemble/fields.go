package assemble

import (
	"strconv"
	"strings"

	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/outbox"
)

// field is a column by its meaning: an index into the image that lean decodes.
type field int

// The fields, in the order in which plans want them. Those from fieldKey on are used where the table has them.
const (
	fieldID field = iota
	fieldMsgID
	fieldTopic
	fieldContent
	fieldStatus
	fieldRetryCount
	fieldNextRetry
	fieldCreated
	fieldKey
	fieldHeaders
	fieldTrace
	fieldBodyRef
	numFields
)

// fieldNames returns the configured column names.
func fieldNames(c outbox.Columns) [numFields]string {
	return [numFields]string{
		fieldID: c.ID, fieldMsgID: c.MsgID, fieldTopic: c.Topic, fieldContent: c.Content, fieldStatus: c.Status,
		fieldRetryCount: c.RetryCount, fieldNextRetry: c.NextRetryTime, fieldCreated: c.CreateTime,
		fieldKey: c.Key, fieldHeaders: c.Headers, fieldTrace: c.Trace, fieldBodyRef: c.BodyRef,
	}
}

// rowMaker turns images into rows.
type rowMaker struct {
	table    outbox.Table
	statuses outbox.Statuses
	// topics are the topic names seen: there are few, and each row would hold a copy otherwise.
	topics map[string]string
}

// maxTopics bounds the names kept: topics come from the data.
const maxTopics = 1000

// apply writes the columns that the image holds into the row. It reports whether the id could be read.
func (m *rowMaker) apply(row *outbox.Row, image lean.Image) bool {
	ok := true
	for f := range numFields {
		v := &image[f]
		if v.State == lean.Absent {
			continue
		}
		switch f {
		case fieldID:
			row.ID, ok = idOf(v)
		case fieldMsgID:
			row.MsgID = string(asText(v))
		case fieldTopic:
			row.Topic = m.topic(asText(v))
		case fieldContent:
			row.Content = asText(v)
		case fieldStatus:
			row.Status = m.status(v)
		case fieldRetryCount:
			row.RetryCount = int(intOf(v))
		case fieldNextRetry:
			row.NextRetry = string(asText(v))
		case fieldCreated:
			row.Created = string(asText(v))
		case fieldKey:
			row.Key = asText(v)
		case fieldHeaders:
			row.Headers = asText(v)
		case fieldTrace:
			row.TraceParent = string(asText(v))
		case fieldBodyRef:
			row.BodyRef = string(asText(v))
		default:
		}
	}
	return ok
}

func (m *rowMaker) topic(b []byte) string {
	if name, ok := m.topics[string(b)]; ok {
		return name
	}
	if m.topics == nil || len(m.topics) >= maxTopics {
		m.topics = make(map[string]string)
	}
	name := string(b)
	m.topics[name] = name
	return name
}

// status reads the status column. NULL is none of the relay's business.
func (m *rowMaker) status(v *lean.Value) outbox.Status {
	switch {
	case v.State != lean.Present:
		return outbox.Foreign
	case v.Kind == lean.Bytes:
		n, err := strconv.ParseInt(strings.TrimSpace(string(v.Bytes)), 10, 64)
		if err != nil {
			return outbox.Foreign
		}
		return m.statuses.Of(n)
	}
	return m.statuses.Of(intOf(v))
}

// idOf returns the 64 bits of an integer id.
func idOf(v *lean.Value) (uint64, bool) {
	if v.State != lean.Present {
		return 0, false
	}
	switch v.Kind {
	case lean.Int:
		return uint64(v.Int), true
	case lean.Uint:
		return v.Uint, true
	case lean.Bytes:
	}
	return 0, false
}

// intOf returns an integer, 0 when there is none.
func intOf(v *lean.Value) int64 {
	if v.State != lean.Present {
		return 0
	}
	switch v.Kind {
	case lean.Int:
		return v.Int
	case lean.Uint:
		return int64(v.Uint)
	case lean.Bytes:
	}
	return 0
}

// asText returns a value as text, nil when it is NULL. Integers are written in decimal: a key column may be one.
func asText(v *lean.Value) []byte {
	if v.State != lean.Present {
		return nil
	}
	switch v.Kind {
	case lean.Int:
		return strconv.AppendInt(nil, v.Int, 10)
	case lean.Uint:
		return strconv.AppendUint(nil, v.Uint, 10)
	case lean.Bytes:
	}
	return v.Bytes
}
