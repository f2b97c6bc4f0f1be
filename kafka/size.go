package kafka

import "example.com/outbox-relay/router"

// Size returns the bytes that a record takes, alone in a batch and uncompressed: an upper bound of what the broker
// compares with the topic's max.message.bytes. Nothing of a size up to Config.MaxMessageBytes is refused by the client.
func Size(rec *router.Record) int { return rec.Size() }

// CheckTopicName reports why Kafka would not take a topic's name, nil when it would.
func CheckTopicName(name string) error { return router.CheckTopicName(name) }
