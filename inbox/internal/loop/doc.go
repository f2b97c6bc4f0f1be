// Package loop brings deliveries to their end by the policy: handled, known as a duplicate, written as a dead letter,
// or the reason to stop. The consumer loops of saramainbox and kgoinbox share it and are left with what is their
// client's: getting records, and committing offsets in order.
//
// It guarantees that Handle returns nil only once a delivery needs nothing more, so an offset that is committed after it
// never covers an unhandled message. It knows no Kafka client.
package loop
