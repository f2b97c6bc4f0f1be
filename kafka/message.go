package kafka

import (
	"github.com/IBM/sarama"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/router"
)

// envelope is a record on its way through sarama, in one allocation with what sarama wants beside it.
type envelope struct {
	msg     sarama.ProducerMessage
	key     bytesOf
	value   bytesOf
	headers [6]sarama.RecordHeader
	queue   *topicQueue
	token   any
}

// bytesOf is sarama.ByteEncoder without an allocation for the interface.
type bytesOf struct{ b []byte }

// Encode returns the bytes.
func (b *bytesOf) Encode() ([]byte, error) { return b.b, nil }

// Length returns how many there are.
func (b *bytesOf) Length() int { return len(b.b) }

func seal(rec *router.Record, token any) *envelope {
	e := &envelope{token: token}
	e.key.b, e.value.b = rec.Key, rec.Value
	e.msg = sarama.ProducerMessage{
		Topic:   rec.Topic,
		Key:     &e.key,
		Value:   &e.value,
		Headers: saramaHeaders(e.headers[:0], rec.Headers),
		// sarama reports a batch that the broker had already as written, without telling where.
		Offset:   OffsetUnknown,
		Metadata: e,
	}
	return e
}

func saramaHeaders(to []sarama.RecordHeader, headers []router.Header) []sarama.RecordHeader {
	for i := range headers {
		to = append(to, sarama.RecordHeader{Key: headerName(headers[i].Key), Value: headers[i].Value})
	}
	return to
}

// The names that each record has. Nobody writes to them.
var (
	nameMsgID    = []byte(words.HeaderMsgID)
	nameSource   = []byte(words.HeaderSource)
	namePosition = []byte(words.HeaderPosition)
	nameCreated  = []byte(words.HeaderCreated)
	nameTrace    = []byte(words.HeaderTraceParent)
)

func headerName(name string) []byte {
	switch name {
	case words.HeaderMsgID:
		return nameMsgID
	case words.HeaderSource:
		return nameSource
	case words.HeaderPosition:
		return namePosition
	case words.HeaderCreated:
		return nameCreated
	case words.HeaderTraceParent:
		return nameTrace
	}
	return []byte(name)
}
