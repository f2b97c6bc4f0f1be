package outbox

import (
	"context"
	"fmt"
)

// Stager writes a body to the staging topic, as one record with the header msg_id, and returns where it lies once all in-sync
// replicas have it (acks=all). It is a few lines of the service's own Kafka client; the retention of its topic must be longer
// than a message may ever wait to be sent.
type Stager func(ctx context.Context, msgID string, body []byte) (BodyRef, error)

// Stage sends a message's body to Kafka ahead of the transaction and returns the message that Put then writes: its row has a
// body_ref in place of the body. At the commit the relay reads the body there and sends it to the message's topic. When the
// transaction rolls back, or never begins, nothing is left but a staged record that retention removes.
//
//	m, err := outbox.Stage(ctx, stager, outbox.Message{Topic: "invoices", Key: "4711", Body: pdf})
//	...
//	err = outbox.Within(ctx, db, func(ctx context.Context, tx *sql.Tx) error {
//		...
//		_, err := outbox.Put(ctx, tx, m)
//		return err
//	})
//
// Call it before the transaction begins: no lock should wait for Kafka. Large bodies stay out of the database and its binlog that
// way; what it costs is a round trip to Kafka before each transaction, and that Kafka must be up for it. The table needs the
// column body_ref. An empty ID is made here. A body of bytes may be anything; it may be as
// large as Kafka takes it (kafka.max_message_bytes of the relay).
func (b *Box) Stage(ctx context.Context, to Stager, m Message) (Message, error) {
	staged, err := b.stage(ctx, to, m)
	if err != nil {
		return Message{}, fmt.Errorf("stage message %s: %w", subject(&m), err)
	}
	return staged, nil
}

func (b *Box) stage(ctx context.Context, to Stager, m Message) (Message, error) {
	body, bodyErr := b.toStage(m.Body)
	if err := b.check(&m); err != nil || bodyErr != nil {
		return Message{}, problems(err, bodyErr)
	}
	if m.ID == "" {
		m.ID = b.ids.next(b.now())
	}
	ref, err := to(ctx, m.ID, body)
	if err != nil {
		return Message{}, err
	}
	m.Body = ref
	return m, nil
}

// toStage returns a body as it goes into the staging topic. Bytes need be no text there.
func (b *Box) toStage(value any) ([]byte, error) {
	switch v := value.(type) {
	case BodyRef:
		return nil, invalid("Body", "is staged already")
	case []byte:
		if len(v) == 0 {
			return nil, invalid("Body", "is empty")
		}
		return v, nil
	}
	text, err := b.encode(value)
	return []byte(text), err
}

// Stage sends a message's body to Kafka ahead of the transaction. See Box.Stage.
func Stage(ctx context.Context, to Stager, m Message) (Message, error) {
	return (&Box{core: standard, unlearned: true}).Stage(ctx, to, m)
}
