package relay_test

import (
	"context"
	"flag"
	"testing"

	"github.com/IBM/sarama"
	"pgregory.net/rapid"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
)

// This file is the world's staged bodies.

// stage takes a row's body out of the row, for some rows. The caller holds mu.
func (w *world) stage(row *outbox.Row) {
	if w.random.IntN(3) > 0 {
		return
	}
	row.BodyRef = outbox.BodyRef{Topic: "staged", Offset: int64(len(w.bodies))}.String()
	w.bodies = append(w.bodies, kafka.Body{Value: row.Content, MsgID: row.MsgID})
	row.Content = nil
}

// Bodies reads staged bodies. Now and then the right to the topic or its leader is missing.
func (b broker) Bodies(_ context.Context, refs []outbox.BodyRef) []kafka.Body {
	bodies := make([]kafka.Body, len(refs))
	err := b.enter(false)
	if err == nil {
		defer b.mu.Unlock()
		switch dice := b.random.IntN(20); {
		case !b.kafkaUp:
			err = sarama.ErrOutOfBrokers
		case dice == 0:
			err = sarama.ErrTopicAuthorizationFailed
		case dice == 1:
			err = sarama.ErrLeaderNotAvailable
		}
	}
	for i, ref := range refs {
		if err != nil {
			bodies[i].Err = err
			continue
		}
		bodies[i] = b.bodies[ref.Offset]
	}
	return bodies
}

// stagedRuns is how many stories TestStagedBodiesUnderFaults tries.
var stagedRuns = flag.Int("relay.staged", 3, "stories for TestStagedBodiesUnderFaults to try")

// TestStagedBodiesUnderFaults is TestRelayUnderFaults where a third of the rows have their bodies in Kafka: order,
// loss and copies are what they are for all others.
func TestStagedBodiesUnderFaults(t *testing.T) {
	checkTimes(t, *stagedRuns, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		m := manner{staged: true, large: rapid.Bool().Draw(rt, "large")}
		steps := rapid.SliceOfN(rapid.IntRange(0, lastStep), 5, 60).Draw(rt, "steps")
		tellStory(t, seed, m, steps)
	})
}
