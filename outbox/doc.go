// Package outbox is the producer's side of the local message table: a service writes its business rows and its messages in one
// local transaction, and the relay brings every committed message to Kafka.
//
//	err := outbox.Within(ctx, db, func(ctx context.Context, tx *sql.Tx) error {
//		if _, err := tx.ExecContext(ctx, "UPDATE orders SET paid = 1 WHERE id = ?", id); err != nil {
//			return err
//		}
//		_, err := outbox.Put(ctx, tx, outbox.Message{
//			ID: "order-4711-paid", Topic: "orders", Key: "4711", Body: paid,
//		})
//		return err
//	})
//
// It needs the standard library only: no Kafka, no Redis, no binlog reader comes with it, not even a MySQL driver.
//
// # What is promised
//
// A message whose transaction commits is sent at least once, with its bytes untouched; a message whose transaction rolls back was
// never there. Messages of one topic and [Message].Key are sent in the order in which their transactions committed, and within
// a transaction in the order of the calls. Nothing is sent by this package itself: Put is one INSERT.
//
// That holds only within a transaction. A pool such as *sql.DB in its place commits each statement by itself, so it is refused with
// [ErrNoTx]. A *sql.Conn is taken: begin the transaction on it first. Nothing is promised when the caller commits in spite of an error
// from Put. A connection that has turned its binlog off gives up order and speed: the relay finds its messages in the table only.
//
// # Ids
//
// The msg_id is what consumers deduplicate by. An id made by Put is a UUIDv7, and a retried business transaction would
// get another one. An id from the business makes Put idempotent: the second call finds the row, leaves it as it is whatever the
// two contents are, and says so in [Receipt].Duplicate. While another transaction that has put the same id is open, Put waits for
// it. Duplicates are told by the unique key on msg_id, also where the connection asks for found rows (clientFoundRows).
//
// # Keys, headers and the trace
//
// The pattern's table has no columns for them; `outbox-relay init` adds them, and [Schema] prints the whole table. A Key or Headers
// in a table without the column are refused with [ErrNoColumn] instead of being dropped. Where the relay takes keys from the
// content (router.key: /order_id), leave Key empty. The traceparent of Config.TraceParent never fails a transaction.
//
// # Sizes and contents
//
// A message that could never be sent fails the business transaction at once ([ErrInvalid]) and not a week later in a list of dead
// letters. [Limits] has the bounds: they are the widths of the pattern's columns, whatever the server's sql_mode does with longer
// text. The body must be JSON, or with Config.Text any UTF-8. Kafka's bound, kafka.max_message_bytes of the relay, is 1 MiB.
//
// # Time
//
// create_time and update_time are the server's NOW() in the session's time zone. [Message].NotBefore is written in the server's own
// time zone, in which the relay compares it, whatever the session's and the service's are.
//
// # Testing
//
// Code that writes messages should take a [Putter]; outboxtest.Box is one in memory.
//
// The rest of the package describes the row for the relay: [Row], [Status], [Columns].
package outbox
