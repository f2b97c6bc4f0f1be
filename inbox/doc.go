// Package inbox is the consumer's side of the local message table: it handles each message once, although Kafka and the relay
// deliver at least once.
//
//	in, err := inbox.New(db, inbox.Config{Group: "points"})
//	...
//	result, err := in.Do(ctx, inbox.Delivery{ID: msgID}, func(ctx context.Context, tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "UPDATE account SET points = points + ? WHERE id = ?", n, id)
//		return err
//	})
//
// Do inserts (consumer_group, msg_id) into the table consumed_message and runs the handler, in one transaction. The primary key
// admits a message once: its second delivery is a [Duplicate], and the handler does not run. If the handler fails, the record is
// rolled back with its work, and the next delivery starts afresh. [Schema] has the table.
//
// It needs the standard library only: no Kafka client comes with it, not even a MySQL driver. The loops around it, with offsets,
// rebalances, retries and dead letters, are the packages saramainbox and kgoinbox. MySQL and MariaDB with InnoDB are supported.
//
// # What is promised
//
// Among the deliveries of one message to one group, at any number of processes, at most one transaction commits; and if the message
// is delivered until Do reports Handled or Duplicate, exactly one does. The effects of the handler in that transaction, and the
// messages that it emits ([Inbox.Emit]), happen exactly once:
//   - Two deliveries at the same moment: the second waits for the first's end, and is a duplicate after its commit, or takes over
//     after its rollback. The record is the transaction's first statement, so under REPEATABLE READ the handler that takes over sees what
//     was committed while it waited.
//   - A deadlock or lock wait: the whole transaction is begun anew, a few times.
//   - A crash at any moment: the server rolls back what was not committed.
//   - The answer to COMMIT is lost: [ErrUnknown]. Deliver the message again, and the record decides.
//
// It costs one round trip for each message.
//
// # When it does not hold
//
// Effects outside the transaction are not undone by a rollback and not guarded by the record: a call to another service, a mail, a
// write to Redis, a record produced to Kafka, a statement on another connection or database. Send them as messages instead
// (Emit), or make them idempotent by the msg_id. Tables that are not transactional (MyISAM) and statements that commit implicitly (DDL)
// are outside, too.
//
// A handler that swallows an error of a statement: after a deadlock the server has rolled the record back, too, and the statements that
// follow are on their own. Return every error.
//
// A message that was published under two msg_ids is two messages. Give messages a business id where the producer may repeat them.
//
// A record that was purged is forgotten.
//
// # The group's name
//
// The group is one half of the key. Use the Kafka consumer group's name, one for each set of effects: two services with one
// name would take each other's messages for handled, and a service that is renamed handles everything again that Kafka still
// has. Several topics may share a group, since msg_ids are unique; so may several processes, which is how a service scales. To
// run a new handler over old messages on purpose, use a new name.
//
// # How long records are kept
//
// [Inbox.Purge] deletes old records in small batches. It refuses to forget a message that may come again: from Kafka after an
// offset reset (retention.ms of the topic), from the relay after a lost position (the binlog's retention), or by hand. It takes 7 days
// for that, Kafka's default, unless [PurgeOptions].Replays says what is true for you. Run it daily, from one process or from all.
//
// # Poison messages
//
// [Permanent] marks an error that no retry mends, [RetryAfter] one that has a time. A loop tries a failed message again, in place,
// with growing pauses ([Policy]), so that order is kept and the messages behind it in its partition wait. When its retries are
// spent, or at once when the error is permanent, it is written to the dead letter topic with the reason in headers
// ([HeaderDeadReason] and others), or the loop stops before it. A dead letter is not recorded as handled, so writing it to its topic
// again delivers it. A crash right after a dead letter was written may write it twice, with the same msg_id.
//
// A database that can't serve ([ErrUnavailable], [ErrUnknown]) is not the message's fault: the loops hold the message and count nothing.
//
// Records without a usable msg_id can't be handled once. They are dead letters by default; a producer that is not an outbox
// may be served by Policy.ID with [PositionID], which tells repeated deliveries of one record.
//
// # A consumer that freezes
//
// A process that is stopped, or whose host or network dies, in the middle of a handler still holds its transaction on the server, and
// with it its message: whoever gets the message next waits. The server ends it when the connection has been silent for
// wait_timeout, which is eight hours by default. Give the consumers' sessions a short one, longer than the longest pause between two
// statements of a handler (with go-sql-driver ?wait_timeout=60 in the DSN, and a shorter SetConnMaxIdleTime of the pool).
//
// # Own transactions
//
// Who has a transaction already, from gorm or ent for instance, calls [Inbox.First] in it before anything else, and commits both
// together or neither.
//
// # Errors and logs
//
// Errors of this package hold ids and the server's error numbers, never values or the server's text. A handler's own error
// comes back unchanged under %w; the loops write only its kind to logs and headers, unless Policy.Describe says otherwise.
package inbox
