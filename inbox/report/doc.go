// Package report lets a consumer tell the producer's side that it has consumed messages: their rows get the status
// consumed, and who asks the table "was this message consumed, and by whom" gets an answer.
//
// There are three ways, and each may be repeated without harm:
//
//   - By Kafka: Encode a Report and produce it to the relay's topic of reports (acks.topic, by convention outbox.acks) with
//     whatever client the consumer has. Nothing but Kafka is needed.
//   - By HTTP: HTTP sends it to the relay's console and returns what came of each message.
//   - By SQL: MarkConsumed changes the rows itself, for consumers that may write to the producer's database, best in the
//     handler's own transaction.
//
// A report may overtake the relay's own mark of the row; that is fine. What is reported stays reported: no later mark takes
// it back. A consumer that reports by Kafka or HTTP reports before it commits its offsets (see Batch), so that a message
// whose report was lost is delivered again and reported then.
//
// The package needs the standard library only.
package report
