package outbox

import (
	"context"
	"database/sql"
	"time"
)

// Message is what a service wants to have sent once its transaction has committed. Topic and Body are needed, the rest
// is not.
type Message struct {
	// ID is the msg_id that consumers deduplicate by. "" means a new UUIDv7. An id from the business ("order-4711-paid")
	// makes the call idempotent: the second Put of it writes nothing and says so. At most 64 characters, no control
	// characters, no space at either end. Whether "A" and "a" are one id is the collation's decision, as for any unique key.
	ID string
	// Topic is the Kafka topic, or what the relay's routes make one of: 1 to 64 (Limits.Topic) of A-Z a-z 0-9 . _ -
	Topic string
	// Key keeps order: messages of one topic and key are sent in the order in which their transactions committed. It
	// needs the column msg_key (Columns.Key): without it Put refuses the message, since the order would be lost in
	// silence. "" means no order to keep. At most 255 characters.
	Key string
	// Body is the content. []byte and json.RawMessage are JSON already and go out byte by byte as they are (see Config.Text for
	// other text). A BodyRef is a body that Stage has put into Kafka: the row then has none. Anything else is encoded by
	// encoding/json: mind that a string becomes a JSON string, in quotes.
	Body any
	// Headers become Kafka headers. They need the column headers (Columns.Headers). The names msg_id and outbox_* are the
	// relay's own and are refused.
	Headers map[string]string
	// NotBefore delays the message until the database's clock has passed it, to the second. The zero time and a time that
	// has passed mean at once. A delayed message has no order to keep.
	NotBefore time.Time
}

// Receipt tells what became of a message. It is worth something once the transaction has committed.
type Receipt struct {
	// ID is the msg_id, the one given or the one made.
	ID string
	// Duplicate says that a message of this ID was there already: it was left as it is, whatever its content and status, and
	// nothing was written.
	Duplicate bool
}

// Execer is the caller's transaction. *sql.Tx, *sqlx.Tx, the ConnPool of a gorm transaction and *ent.Tx (with the
// feature sql/execquery) are one. So is a *sql.Conn on which the caller has begun a transaction by himself.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Queryer is what an Execer usually is besides. With it a Box learns which optional columns the table has, and PutAll tells
// duplicates apart in one round trip; without it the optional columns that a message needs are taken for granted.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Putter is what code that writes messages should ask for, so that its tests can pass an outboxtest.Box.
type Putter interface {
	// Put writes one message in the caller's transaction.
	Put(ctx context.Context, tx Execer, m Message) (Receipt, error)
	// PutAll writes several, in their order, and returns a receipt for each.
	PutAll(ctx context.Context, tx Execer, messages []Message) ([]Receipt, error)
}
