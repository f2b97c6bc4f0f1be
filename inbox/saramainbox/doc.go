// Package saramainbox consumes topics with a sarama consumer group and handles each message once, by an inbox.Inbox.
//
//	err := saramainbox.Run(ctx, in, handler, saramainbox.Config{
//		Brokers: []string{"127.0.0.1:9092"},
//		Topics:  []string{"order-events"},
//		Policy:  inbox.Policy{DeadLetterTopic: "order-events.points.dead"},
//	}, log)
//
// One goroutine handles each partition, in order. An offset is marked after the handler's transaction is committed, and
// committed to Kafka within a second and whenever a partition is given back. So a crash repeats at most what a second
// brought, and each of those is found in the table and skipped.
//
// When partitions are revoked or ctx ends, no new message is begun, the running handlers may finish within Policy.Grace,
// what is done is committed, and the group is left. A handler that does not even end with its context holds up the rebalance for
// five more seconds.
//
// Eager assignment strategies only (range, round robin, sticky): with a cooperative one sarama does not tell a handler that is
// in a pause between attempts that its partition is revoked. Package kgoinbox knows those.
package saramainbox
