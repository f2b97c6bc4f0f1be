//go:build bench && !unit

package inbox

import (
	"testing"
	"time"

	"example.com/outbox-relay/test/rig"
)

// TestFiftyKillsOfConsumers kills two consumers of a group 50 times while they handle 100 000 messages. They have no instance
// ids, so each kill hands the partitions to the other one once the session has timed out. A few minutes for each adapter.
func TestFiftyKillsOfConsumers(t *testing.T) {
	const messages, kills = 100_000, 50
	for adapter := range adapters {
		t.Run(adapter, func(t *testing.T) {
			kafka := rig.Kafka(t, rig.Own(), rig.KafkaConfig(map[string]string{"group.min.session.timeout.ms": "1000"}))
			s := newScene(t, kafka, 6)
			for range 100 {
				s.produce(messages / 100)
			}
			begun := time.Now()
			c := s.crew(adapter, 2, false, 1500*time.Millisecond)
			c.killAtRandom(kills, messages, 2*time.Minute)
			s.handled(messages, 2*time.Minute)
			took := time.Since(begun)
			c.stop()
			s.exactlyOnce()
			t.Logf("%d messages handled once by two consumers with %d kills in %s", messages, kills, took.Round(time.Second))
		})
	}
}
