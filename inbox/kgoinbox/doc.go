// Package kgoinbox consumes topics with a franz-go consumer group and handles each message once, by an inbox.Inbox.
//
//	err := kgoinbox.Run(ctx, in, handler, kgoinbox.Config{
//		Client: []kgo.Opt{kgo.SeedBrokers("127.0.0.1:9092")},
//		Topics: []string{"order-events"},
//		Policy: inbox.Policy{DeadLetterTopic: "order-events.points.dead"},
//	}, log)
//
// One goroutine handles each partition, in order. An offset is marked after the handler's transaction is committed, and
// committed to Kafka within a second and whenever a partition is given back. So a crash repeats at most what a second
// brought, and each of those is found in the table and skipped.
//
// When partitions are revoked or ctx ends, no new message of them is begun, the running handlers may finish within
// Policy.Grace, what is done is committed, and the group is left. A handler that does not even end with its context is left
// behind after five more seconds; its transaction can't commit any more.
//
// A partition whose handler is slow stops being fetched when a megabyte or a thousand records of it are waiting; the others go on.
package kgoinbox
